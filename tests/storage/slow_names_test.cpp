// A server's name whose address does not come: what is stopped does not wait for it.
#include <atomic>
#include <chrono>
#include <future>
#include <stop_token>
#include <string_view>
#include <thread>

#include <curl/curl.h>
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netdb.h>

#include "src/core/interruption.hpp"
#include "src/storage/http/client.hpp"

namespace {
std::atomic<bool> asked = false;
std::atomic<bool> answered = false;
}  // namespace

// In the place of the C library's, also for libcurl.
extern "C" [[gnu::visibility("default")]] int getaddrinfo(const char* name, const char* service,
                                                          const addrinfo* hints, addrinfo** found) {
  if (name == nullptr || std::string_view(name) != "slow.invalid") {
    static const auto kReal =
        reinterpret_cast<decltype(&::getaddrinfo)>(::dlsym(RTLD_NEXT, "getaddrinfo"));
    return kReal(name, service, hints, found);
  }
  asked = true;
  while (!answered) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  return EAI_NONAME;
}

namespace penstock::storage {
namespace {

using namespace std::chrono_literals;

TEST(SlowNames, AreNotWaitedForByWhatIsStopped) {
  if (::curl_version_info(CURLVERSION_NOW)->version_num < 0x075700)
    GTEST_SKIP() << "needs libcurl 7.87, which has CURLOPT_QUICK_EXIT";
  const HttpClient client({.connect = 600s, .idle = 600s});
  std::stop_source stop;
  auto answer = std::async(std::launch::async, [&] {
    const core::Interruption interruption(stop.get_token());
    return client.send({.url = "http://slow.invalid/", .bypass_proxy = true});
  });
  while (!asked && answer.wait_for(5ms) != std::future_status::ready) {
  }
  stop.request_stop();
  const bool came = answer.wait_for(300s) == std::future_status::ready;
  answered = true;
  EXPECT_TRUE(asked) << "libcurl asks otherwise";
  EXPECT_TRUE(came);
  const auto result = answer.get();
  ASSERT_FALSE(result);
  EXPECT_THAT(result.fault().reason, testing::HasSubstr("stopped"));
}

}  // namespace
}  // namespace penstock::storage
