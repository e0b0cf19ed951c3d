#include "src/loader/row_message.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <iterator>
#include <utility>

#include <fmt/format.h>

#include <penstock/core/random.hpp>

#include "src/core/exception_text.hpp"
#include "src/core/json_fields.hpp"
#include "src/core/version.hpp"
#include "src/loader/fault_json.hpp"

namespace penstock {

namespace loader {

namespace {

using core::Json;

// Both ends are of one version of the library, on machines of one byte order.
static_assert(std::endian::native == std::endian::little);

constexpr const char* kSettings = "the settings of a penstock loader's rows";
constexpr std::array<char, 8> kRequestMagic = {'P', 'S', 'R', 'O', 'W', 'R', 'Q', '1'};
constexpr std::array<char, 8> kAnswerMagic = {'P', 'S', 'R', 'O', 'W', 'A', 'N', '1'};
constexpr std::size_t kUsualFindings = 4096;

struct RequestHeader {
  std::array<char, 8> magic = kRequestMagic;
  RowPlace place;
};
static_assert(sizeof(RequestHeader) == 48 && sizeof(SampleId) == 24);

struct AnswerHeader {
  std::array<char, 8> magic = kAnswerMagic;
  RowPlace place;
  std::uint64_t row_bytes = 0;
  std::uint64_t finding_bytes = 0;
};
static_assert(sizeof(AnswerHeader) == kRowsOffset);

// A message's header; null where it is too short or begins otherwise.
template <class Header>
std::optional<Header> read_header(std::span<const std::byte> bytes) {
  Header header;
  if (bytes.size() < sizeof(Header)) return std::nullopt;
  const auto magic = header.magic;
  std::memcpy(&header, bytes.data(), sizeof(Header));
  if (header.magic != magic) return std::nullopt;
  return header;
}

std::string describe(const RowPlace& place) {
  return fmt::format("rows {} to {} of step {}, for replica {}", place.first_row,
                     place.first_row + place.rows, place.step, place.replica);
}

std::string to_hex(std::string_view bytes) {
  std::string text;
  text.reserve(2 * bytes.size());
  for (const char byte : bytes)
    fmt::format_to(std::back_inserter(text), "{:02x}", static_cast<unsigned char>(byte));
  return text;
}

std::string from_hex(std::string_view text) {
  const auto digit = [](char c) -> int {
    constexpr std::string_view kDigits = "0123456789abcdef";
    const auto at = kDigits.find(c);
    if (at == std::string_view::npos) throw Error("made rows are damaged: their findings");
    return static_cast<int>(at);
  };
  std::string bytes;
  for (std::size_t i = 0; i + 1 < text.size(); i += 2)
    bytes += static_cast<char>(digit(text[i]) * 16 + digit(text[i + 1]));
  return bytes;
}

}  // namespace

// ---- as JSON ----

struct SavedSettings {
  std::string penstock = core::version();
  std::uint32_t random = kRandomVersion;
  RowSettings settings;
  std::int64_t backoff_ms = 0;
  Json plan;
};

template <class Visitor>
void visit_fields(Visitor& visit, SavedSettings& saved) {
  visit.required("penstock", saved.penstock);
  visit.required("random", saved.random);
  visit.required("seed", saved.settings.seed);
  visit.required("processes", saved.settings.processes);
  visit.required("mode", saved.settings.mode);
  visit.required("shards", saved.settings.shards);
  visit.required("on_fault", saved.settings.on_fault);
  visit.required("attempts", saved.settings.retry.attempts);
  visit.required("backoff_ms", saved.backoff_ms);
  visit.required("plan", saved.plan);
}

template <class Visitor>
void visit_fields(Visitor& visit, Replacement& replacement) {
  visit.required("row", replacement.row);
  visit.required("sample", replacement.sample.number);
  visit.required("epoch", replacement.sample.epoch);
  visit.required("source", replacement.sample.source);
  visit.required("draw", replacement.sample.draw);
}

// A fault, and what a user's function threw.
struct CarriedFault {
  Fault fault;
  std::optional<std::string> cause;  // hexadecimal
};

template <class Visitor>
void visit_fields(Visitor& visit, CarriedFault& carried) {
  visit.required("fault", carried.fault);
  visit.required("transient", carried.fault.transient);
  visit.required("out_of_memory", carried.fault.out_of_memory);
  visit("cause", carried.cause);
}

struct SavedFindings {
  RowFindings findings;
  std::vector<CarriedFault> faults;
  std::optional<CarriedFault> fatal;
  std::optional<std::string> learned;  // hexadecimal
};

template <class Visitor>
void visit_fields(Visitor& visit, SavedFindings& saved) {
  visit.required("bytes_read", saved.findings.bytes_read);
  visit.required("retries", saved.findings.retries);
  visit.required("read_ns", saved.findings.read_ns);
  visit.required("decode_ns", saved.findings.decode_ns);
  visit.required("made_ns", saved.findings.made_ns);
  visit.required("replaced", saved.findings.replaced);
  visit.required("faults", saved.faults);
  visit("fatal", saved.fatal);
  visit("learned", saved.learned);
}

std::string RowSettings::to_json() const {
  return core::dump_json(
      core::write_json(SavedSettings{.settings = *this,
                                     .backoff_ms = retry.initial_backoff.count(),
                                     .plan = core::parse_json(identity, "the plan")}));
}

RowSettings RowSettings::parse(std::string_view text) {
  const Json json = core::parse_json(text, kSettings);
  const auto version = json.is_object() ? json.find("penstock") : json.end();
  if (version != json.end() && *version != core::version())
    throw Error(
        fmt::format("the loader runs penstock {}, and rows for it are to be made by penstock {}: "
                    "install the same "
                    "version on all machines",
                    core::describe_value(*version), core::version()));
  auto saved = core::read_options<SavedSettings>(json, kSettings);
  if (saved.random != kRandomVersion)
    throw Error(
        fmt::format("the loader has version {} of the random numbers, and this penstock has "
                    "version {}: install the "
                    "same version on all machines",
                    saved.random, kRandomVersion));
  if (saved.settings.processes == 0) core::refuse_value(kSettings, "1 process or more", 0);
  saved.settings.retry.initial_backoff = std::chrono::milliseconds(saved.backoff_ms);
  saved.settings.identity = core::dump_json(saved.plan);
  return saved.settings;
}

// ---- requests ----

std::vector<std::byte> write_request(const RowPlace& place, std::span<const SampleId> samples) {
  const RequestHeader header{.place = place};
  std::vector<std::byte> bytes(sizeof header + samples.size_bytes());
  std::memcpy(bytes.data(), &header, sizeof header);
  std::memcpy(bytes.data() + sizeof header, samples.data(), samples.size_bytes());
  return bytes;
}

RowRequest read_request(std::span<const std::byte> bytes) {
  const auto header = read_header<RequestHeader>(bytes);
  if (!header)
    throw Error(
        fmt::format("these {} bytes are no request for rows: give RowMaker.make what "
                    "RowTask.request says",
                    bytes.size()));
  const std::size_t left = bytes.size() - sizeof *header;
  if (left % sizeof(SampleId) != 0 || left / sizeof(SampleId) != header->place.rows || left == 0)
    throw Error(fmt::format(
        "a request for {} rows has {} bytes of samples, where {} each are expected: it is damaged",
        header->place.rows, left, sizeof(SampleId)));
  RowRequest request{.place = header->place, .samples = std::vector<SampleId>(header->place.rows)};
  std::memcpy(request.samples.data(), bytes.data() + sizeof *header, left);
  return request;
}

// ---- answers ----

RowBytes make_answer(std::size_t row_bytes) {
  const std::size_t size = kRowsOffset + row_bytes + kUsualFindings;
  return {.data = std::make_unique_for_overwrite<std::byte[]>(size), .size = size};
}

void complete_answer(RowBytes& answer, const RowPlace& place, std::size_t row_bytes,
                     const RowFindings& findings, const ExceptionCodec& causes) {
  const auto carry = [&](const Fault& fault) {
    CarriedFault carried{.fault = fault, .cause = std::nullopt};
    if (fault.cause)
      carried.cause =
          to_hex(causes.encode ? causes.encode(fault.cause) : core::text_of(fault.cause));
    return carried;
  };
  SavedFindings saved{.findings = findings};
  for (const Fault& fault : findings.faults) saved.faults.push_back(carry(fault));
  if (findings.fatal) saved.fatal = carry(*findings.fatal);
  if (!findings.learned.empty())
    saved.learned =
        to_hex({reinterpret_cast<const char*>(findings.learned.data()), findings.learned.size()});
  const std::string text = core::dump_json(core::write_json(saved));

  const std::size_t size = kRowsOffset + row_bytes + text.size();
  if (size > answer.size) {
    auto larger = std::make_unique_for_overwrite<std::byte[]>(size);
    std::memcpy(larger.get() + kRowsOffset, answer.data.get() + kRowsOffset, row_bytes);
    answer.data = std::move(larger);
  }
  answer.size = size;
  const AnswerHeader header{.place = place, .row_bytes = row_bytes, .finding_bytes = text.size()};
  std::memcpy(answer.data.get(), &header, sizeof header);
  std::memcpy(answer.data.get() + kRowsOffset + row_bytes, text.data(), text.size());
}

RowAnswer read_answer(std::span<const std::byte> bytes, const RowPlace& place,
                      std::size_t row_bytes, const ExceptionCodec& causes) {
  const auto header = read_header<AnswerHeader>(bytes);
  if (!header)
    throw Error(
        fmt::format("these {} bytes are no rows: give RowTask.finish what RowMaker.make returned",
                    bytes.size()));
  if (header->place != place)
    throw Error(fmt::format("these are {}, and {} were asked for", describe(header->place),
                            describe(place)));
  const std::size_t body = bytes.size() - kRowsOffset;
  if (header->row_bytes != row_bytes || body < row_bytes ||
      body - row_bytes != header->finding_bytes)
    throw Error(fmt::format(
        "{} have {} bytes, and {} were expected: the message was cut, or the plans differ",
        describe(place), std::min<std::uint64_t>(body, header->row_bytes), row_bytes));
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()) + kRowsOffset + row_bytes,
                              header->finding_bytes);
  constexpr const char* kWhere = "made rows are damaged: their findings";
  auto saved = core::read_options<SavedFindings>(core::parse_json(text, kWhere), kWhere);
  const auto unpack = [&](CarriedFault& carried) {
    Fault fault = std::move(carried.fault);
    if (carried.cause) {
      const std::string cause = from_hex(*carried.cause);
      fault.cause = causes.decode ? causes.decode(cause) : std::make_exception_ptr(Error(cause));
    }
    return fault;
  };
  RowAnswer answer{.rows = bytes.subspan(kRowsOffset, row_bytes),
                   .findings = std::move(saved.findings)};
  for (CarriedFault& carried : saved.faults) answer.findings.faults.push_back(unpack(carried));
  if (saved.fatal) answer.findings.fatal = unpack(*saved.fatal);
  if (saved.learned) {
    const std::string learned = from_hex(*saved.learned);
    const auto learned_bytes = std::as_bytes(std::span(learned));
    answer.findings.learned.assign(learned_bytes.begin(), learned_bytes.end());
  }
  const auto check = [&](const Fault& fault) {
    if (fault.row < place.first_row || fault.row - place.first_row >= place.rows)
      throw Error(fmt::format("{}: a fault of row {}, and they are {}", kWhere, fault.row,
                              describe(place)));
  };
  std::ranges::for_each(answer.findings.faults, check);
  if (answer.findings.fatal) check(*answer.findings.fatal);
  for (const Replacement& replacement : answer.findings.replaced)
    if (replacement.row >= place.rows)
      throw Error(
          fmt::format("{}: row {} of {} was replaced", kWhere, replacement.row, place.rows));
  return answer;
}

}  // namespace loader
}  // namespace penstock
