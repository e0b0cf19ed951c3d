// Saved states and plans: a text is refused by an Error, or comes back as it is when it is written again.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <stdexcept>
#include <string>

#include <nlohmann/json.hpp>

#include <penstock/core/random.hpp>

#include "tests/loader/fakes.hpp"

namespace {

// Few mutations keep a state's checksum: without this, what stands behind it is hardly reached.
std::string with_checksum(const std::string& text) {
  auto state = nlohmann::json::parse(text, nullptr, false);
  if (!state.is_object() || !state.contains("checksum")) return text;
  state.erase("checksum");
  try {
    state["checksum"] = penstock::hash_text(state.dump());
    return state.dump();
  } catch (const nlohmann::json::exception&) {  // no UTF-8
    return text;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace penstock;
  const std::string text = with_checksum({reinterpret_cast<const char*>(data), size});
  try {
    const LoaderState state = LoaderState::from_json(text);
    if (LoaderState::from_json(state.to_json()).to_json() != state.to_json()) std::abort();
  } catch (const Error&) {
  }
  // A source that a plan names is opened.
  for (const char* opens : {"path", "files", "image_folder", "synthetic"})
    if (text.find(opens) != text.npos) return 0;
  try {
    static const Registry kRegistry = testing_support::fake_registry();
    const Dataset plan = Dataset::from_json(text, {.registry = kRegistry});
    const std::string written = plan.to_json({.registry = kRegistry});
    if (Dataset::from_json(written, {.registry = kRegistry}).to_json({.registry = kRegistry}) !=
        written)
      std::abort();
  } catch (const Error&) {
  } catch (const std::invalid_argument&) {  // also std::stoull's, of the tests' source
  } catch (const std::out_of_range&) {
  }
  return 0;
}
