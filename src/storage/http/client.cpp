#include "src/storage/http/client.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <new>
#include <utility>

#include <curl/curl.h>
#include <fmt/format.h>

#include <penstock/core/error.hpp>

#include "src/core/interruption.hpp"

namespace penstock::storage {

namespace {

using Clock = HttpTime::clock;

// A page of a listing, or an error; more is none of them.
constexpr std::size_t kMaxBody = std::size_t{64} << 20;
// A server that sends a byte now and then could hold a thread for ever.
constexpr curl_off_t kLeastBytesASecond = 1024;

// One transfer, as curl's callbacks see it.
struct Transfer {
  CURL* curl = nullptr;
  HttpResponse response{};
  HttpProgress progress{};
  std::optional<std::span<std::byte>> into{};
  std::chrono::milliseconds idle{};
  Clock::time_point enough_at = Clock::now();  // when there were enough bytes last, and how many
  curl_off_t bytes = 0;
  bool trickles = false;
  bool stalled = false;
  bool overflow = false;

  void note_bytes() {
    progress.last_byte = Clock::now();
    if (!progress.has_begun()) progress.first_byte = progress.last_byte;
  }

  std::size_t take_body(const char* data, std::size_t size) {
    note_bytes();
    if (response.status == 0) ::curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &response.status);
    const std::uint64_t before = response.received;
    response.received += size;
    if (into && response.is_good()) {
      overflow = response.received > into->size();
      if (overflow) return 0;
      std::copy_n(reinterpret_cast<const std::byte*>(data), size, into->data() + before);
    } else {
      overflow = response.received > kMaxBody;
      if (overflow) return 0;
      response.body.append(data, size);
    }
    return size;
  }

  void take_header(std::string_view line) {
    note_bytes();
    if (line.starts_with("HTTP/")) return response.headers.clear();  // of an interim response
    const std::size_t colon = line.find(':');
    if (colon == line.npos) return;
    std::string name(line.substr(0, colon));
    for (char& c : name) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    line.remove_prefix(colon + 1);
    const std::size_t first = line.find_first_not_of(" \t\r\n");
    const std::size_t last = line.find_last_not_of(" \t\r\n");
    const std::string_view value =
        first == line.npos ? std::string_view() : line.substr(first, last - first + 1);
    // One that comes again is a list that goes on (RFC 9110, 5.3).
    const auto [header, is_first] = response.headers.try_emplace(name, value);
    if (!is_first) (header->second += ", ") += value;
  }

  // curl calls this at least once a second.
  int watch(curl_off_t now_bytes) {
    const Clock::time_point now = Clock::now();
    const auto enough =
        std::max<curl_off_t>(std::chrono::duration_cast<std::chrono::seconds>(idle).count(), 1) *
        kLeastBytesASecond;
    if (now_bytes - bytes >= enough) {
      bytes = now_bytes;
      enough_at = now;
    }
    trickles = now_bytes > bytes;
    stalled = now - enough_at > idle;
    return stalled ? 1 : 0;
  }
};

std::size_t on_body(char* data, std::size_t one, std::size_t size, void* transfer) {
  return static_cast<Transfer*>(transfer)->take_body(data, one * size);
}
std::size_t on_header(char* data, std::size_t one, std::size_t size, void* transfer) {
  static_cast<Transfer*>(transfer)->take_header({data, one * size});
  return one * size;
}
int on_progress(void* transfer, curl_off_t, curl_off_t down, curl_off_t, curl_off_t up) {
  return static_cast<Transfer*>(transfer)->watch(down + up);
}

bool is_transient(CURLcode code) noexcept {
  switch (code) {
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_RESOLVE_PROXY:
    case CURLE_COULDNT_CONNECT:
    case CURLE_OPERATION_TIMEDOUT:
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_GOT_NOTHING:
    case CURLE_SEND_ERROR:
    case CURLE_RECV_ERROR:
    case CURLE_PARTIAL_FILE:
    case CURLE_WEIRD_SERVER_REPLY:
    case CURLE_HTTP2:
    case CURLE_HTTP2_STREAM:
      return true;
    default:
      return false;
  }
}

// libcurl's own start, once in a process and never undone: other code may use it too.
bool start_curl() {
  static const bool kStarted = ::curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK;
  return kStarted;
}

struct FreeList {
  void operator()(curl_slist* list) const noexcept { ::curl_slist_free_all(list); }
};

}  // namespace

// Easy handles, one a place, with the connections that they have made.
class HttpClient::Handle {
 public:
  Handle() : multi_(::curl_multi_init()) {
    if (multi_ == nullptr) throw Error("libcurl cannot make a handle: out of memory?");
  }
  ~Handle() {
    for (std::size_t place = 0; place < places_.size(); ++place) {
      give_up(place);
      ::curl_easy_cleanup(places_[place].transfer.curl);
    }
    ::curl_multi_cleanup(multi_);
  }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;

  void start(std::size_t at, const HttpRequest& request, const HttpTimeouts& timeouts,
             const char* ca_bundle, std::optional<std::span<std::byte>> into) {
    Place& place = places_[at];
    if (place.transfer.curl == nullptr) place.transfer.curl = ::curl_easy_init();
    CURL* const curl = place.transfer.curl;
    if (curl == nullptr) throw Error("libcurl cannot make a handle: out of memory?");
    place.transfer = {.curl = curl,
                      .progress = {.started = Clock::now()},
                      .into = into,
                      .idle = request.idle.value_or(timeouts.idle)};
    place.headers.reset();
    for (const std::string& header : request.headers) {
      place.headers.reset(::curl_slist_append(place.headers.release(), header.c_str()));
    }
    const auto set = [&](CURLoption option, auto value) { set_option(curl, option, value); };
    ::curl_easy_reset(curl);  // the connections stay
    place.error.front() = '\0';
    set(CURLOPT_ERRORBUFFER, place.error.data());
    set(CURLOPT_URL, request.url.c_str());
    set(CURLOPT_PATH_AS_IS, 1L);  // "a/../b" is a key like any other
    set(CURLOPT_PROTOCOLS_STR, "http,https");
    set(CURLOPT_HTTPHEADER, place.headers.get());
    set(CURLOPT_NOSIGNAL, 1L);
#if LIBCURL_VERSION_NUM >= 0x075700
    set(CURLOPT_QUICK_EXIT, 1L);  // what is stopped does not wait for a name's address
#endif
    set(CURLOPT_TCP_KEEPALIVE, 1L);
    // Several threads need a connection or stream for each request in progress.
    set(CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
    set(CURLOPT_CONNECTTIMEOUT_MS, static_cast<long>(timeouts.connect.count()));
    set(CURLOPT_WRITEFUNCTION, on_body);
    set(CURLOPT_WRITEDATA, &place.transfer);
    set(CURLOPT_HEADERFUNCTION, on_header);
    set(CURLOPT_HEADERDATA, &place.transfer);
    set(CURLOPT_XFERINFOFUNCTION, on_progress);
    set(CURLOPT_XFERINFODATA, &place.transfer);
    set(CURLOPT_NOPROGRESS, 0L);
    if (request.bypass_proxy) set(CURLOPT_NOPROXY, "*");
    if (request.uses_netrc) {
      set(CURLOPT_NETRC, static_cast<long>(CURL_NETRC_OPTIONAL));
      if (const char* const netrc = std::getenv("NETRC"); netrc != nullptr && *netrc != '\0')
        set(CURLOPT_NETRC_FILE, netrc);
    }
    if (request.method == "HEAD") set(CURLOPT_NOBODY, 1L);
    if (request.method == "PUT" || request.method == "POST") {
      set(CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(request.body.size()));
      set(CURLOPT_POSTFIELDS, request.body.empty() ? "" : request.body.data());
    }
    if (request.method == "PUT" || request.method == "DELETE")
      set(CURLOPT_CUSTOMREQUEST, request.method.c_str());
    if (ca_bundle != nullptr) set(CURLOPT_CAINFO, ca_bundle);
    place.code = CURLE_FAILED_INIT;
    place.state =
        ::curl_multi_add_handle(multi_, curl) == CURLM_OK ? State::in_flight : State::ended;
  }

  [[nodiscard]] bool is_free(std::size_t at) const noexcept {
    return places_[at].state == State::free;
  }

  // A loader that is stopped does not wait for a server.
  [[nodiscard]] std::optional<std::size_t> wait(HttpTime until) {
    constexpr std::chrono::milliseconds kLook(20);
    for (;;) {
      if (core::Interruption::is_requested()) return std::nullopt;
      int running = 0;
      CURLMcode code = ::curl_multi_perform(multi_, &running);
      note_ended();
      for (std::size_t at = 0; at < places_.size(); ++at)
        if (places_[at].state == State::ended) return at;
      // Not before: what came while this thread had no core is no wait for the server.
      const Clock::time_point now = Clock::now();
      if (now >= until) return std::nullopt;
      const auto left =
          until - now > kLook ? kLook : std::chrono::ceil<std::chrono::milliseconds>(until - now);
      if (code == CURLM_OK)
        code = ::curl_multi_poll(multi_, nullptr, 0, static_cast<int>(left.count()), nullptr);
      if (code == CURLM_OK) continue;
      for (Place& place : places_)
        if (place.state == State::in_flight) end(place, CURLE_FAILED_INIT);
    }
  }

  Result<HttpResponse> take(std::size_t at) {
    Place& place = places_[at];
    if (place.state == State::in_flight) end(place, CURLE_ABORTED_BY_CALLBACK);
    place.state = State::free;
    Transfer& transfer = place.transfer;
    const CURLcode code = place.code;
    ::curl_easy_getinfo(transfer.curl, CURLINFO_RESPONSE_CODE, &transfer.response.status);
    if (code == CURLE_OK || (code == CURLE_WRITE_ERROR && transfer.overflow)) {
      return std::move(transfer.response);
    }
    if (core::Interruption::is_requested()) return Fault{.reason = core::Interruption::kReason};
    if (transfer.stalled) {
      return Fault{.reason = fmt::format("{} for {} ms (the timeout)",
                                         transfer.trickles ? "less than 1 KiB a second" : "no byte",
                                         transfer.idle.count()),
                   .transient = true};
    }
    return Fault{
        .reason = place.error.front() != '\0' ? place.error.data() : ::curl_easy_strerror(code),
        .transient = is_transient(code),
        .out_of_memory = code == CURLE_OUT_OF_MEMORY};
  }

  void give_up(std::size_t at) noexcept {
    if (places_[at].state == State::in_flight) end(places_[at], CURLE_ABORTED_BY_CALLBACK);
    places_[at].state = State::free;
  }

  [[nodiscard]] const Transfer& transfer(std::size_t at) const noexcept {
    return places_[at].transfer;
  }

 private:
  enum class State : std::uint8_t { free, in_flight, ended };
  struct Place {
    Transfer transfer{};
    std::unique_ptr<curl_slist, FreeList> headers{};
    std::array<char, CURL_ERROR_SIZE> error{};
    CURLcode code = CURLE_OK;
    State state = State::free;
  };

  void end(Place& place, CURLcode code) noexcept {
    ::curl_multi_remove_handle(multi_, place.transfer.curl);
    place.code = code;
    place.state = State::ended;
  }

  void note_ended() noexcept {
    int left = 0;
    while (const CURLMsg* const message = ::curl_multi_info_read(multi_, &left)) {
      if (message->msg != CURLMSG_DONE) continue;
      const CURLcode code = message->data.result;  // not there when the handle is removed
      for (Place& place : places_)
        if (place.state == State::in_flight && place.transfer.curl == message->easy_handle) {
          end(place, code);
          break;
        }
    }
  }

  template <class Value>
  static void set_option(CURL* curl, CURLoption option, Value value) {
    const CURLcode code = ::curl_easy_setopt(curl, option, value);
    if (code != CURLE_OK) {
      throw Error(fmt::format("libcurl {} does not take option {}: {}",
                              ::curl_version_info(CURLVERSION_NOW)->version,
                              static_cast<int>(option), ::curl_easy_strerror(code)));
    }
  }

  CURLM* multi_;
  std::array<Place, HttpFlight::kMost> places_{};
};

std::string HttpResponse::header(std::string_view name) const {
  const auto found = headers.find(name);
  return found == headers.end() ? std::string() : found->second;
}

HttpClient::HttpClient(HttpTimeouts timeouts, std::vector<const char*> ca_variables)
    : timeouts_(timeouts), ca_variables_(std::move(ca_variables)) {
  if (!start_curl()) throw Error("libcurl cannot be started");
}
HttpClient::~HttpClient() = default;

std::unique_ptr<HttpClient::Handle> HttpClient::take() const {
  {
    const std::lock_guard lock(mutex_);
    if (!idle_.empty()) {
      auto handle = std::move(idle_.back());
      idle_.pop_back();
      return handle;
    }
  }
  return std::make_unique<Handle>();
}

void HttpClient::give_back(std::unique_ptr<Handle> handle) const {
  const std::lock_guard lock(mutex_);
  idle_.push_back(std::move(handle));
}

Result<HttpResponse> HttpClient::send(const HttpRequest& request,
                                      std::optional<std::span<std::byte>> into) const {
  HttpFlight flight(*this);
  flight.start(0, request, into);
  (void)flight.wait(HttpTime::max());
  return flight.take(0);
}

HttpFlight::HttpFlight(const HttpClient& client) : client_(&client), handle_(client.take()) {}

HttpFlight::~HttpFlight() {
  for (std::size_t place = 0; place < kMost; ++place) handle_->give_up(place);
  try {
    client_->give_back(std::move(handle_));
  } catch (const std::bad_alloc&) {  // then its connections are closed
  }
}

void HttpFlight::start(std::size_t place, const HttpRequest& request,
                       std::optional<std::span<std::byte>> into) {
  const char* ca_bundle = nullptr;
  for (const char* const variable : client_->ca_variables_) {
    const char* const value = std::getenv(variable);
    if (ca_bundle == nullptr && value != nullptr && *value != '\0') ca_bundle = value;
  }
  handle_->start(place, request, client_->timeouts_, ca_bundle, into);
}

bool HttpFlight::is_free(std::size_t place) const noexcept { return handle_->is_free(place); }

std::optional<std::size_t> HttpFlight::wait(HttpTime until) { return handle_->wait(until); }

Result<HttpResponse> HttpFlight::take(std::size_t place) { return handle_->take(place); }

void HttpFlight::give_up(std::size_t place) noexcept { handle_->give_up(place); }

const HttpProgress& HttpFlight::progress(std::size_t place) const noexcept {
  return handle_->transfer(place).progress;
}

const HttpResponse& HttpFlight::so_far(std::size_t place) const noexcept {
  return handle_->transfer(place).response;
}

}  // namespace penstock::storage
