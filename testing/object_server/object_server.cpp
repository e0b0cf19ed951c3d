#include "testing/object_server/object_server.hpp"

#include <algorithm>
#include <condition_variable>
#include <cstddef>
#include <cstdlib>
#include <stdexcept>

#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

namespace penstock::test {

namespace {

std::uint64_t mixed(std::uint64_t value) {  // SplitMix64
  value += 0x9e3779b97f4a7c15U;
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9U;
  value = (value ^ (value >> 27)) * 0x94d049bb133111ebU;
  return value ^ (value >> 31);
}

std::uint64_t hash_of(std::string_view text) {
  std::uint64_t hash = 0;
  for (const char c : text) hash = mixed(hash ^ static_cast<unsigned char>(c));
  return hash;
}

std::uint64_t draw_of(const Troubles& troubles, const ObjectRead& read) {
  return mixed(mixed(mixed(troubles.seed ^ hash_of(read.key)) ^ read.offset) ^
               static_cast<std::uint64_t>(read.earlier));
}

std::string header_of(std::string_view request, std::string_view name) {
  const std::string line = fmt::format("\r\n{}: ", name);
  const auto is_same = [](char a, char b) {
    return (a >= 'A' && a <= 'Z' ? a - 'A' + 'a' : a) == (b >= 'A' && b <= 'Z' ? b - 'A' + 'a' : b);
  };
  const auto found = std::search(request.begin(), request.end(), line.begin(), line.end(), is_same);
  if (found == request.end()) return {};
  const std::string_view rest(found + static_cast<std::ptrdiff_t>(line.size()), request.end());
  return std::string(rest.substr(0, rest.find("\r\n")));
}

std::string decoded(std::string_view text) {
  std::string plain;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] == '%' && at + 2 < text.size()) {
      plain +=
          static_cast<char>(std::strtol(std::string(text.substr(at + 1, 2)).c_str(), nullptr, 16));
      at += 2;
    } else {
      plain += text[at];
    }
  }
  return plain;
}

std::string encoded(std::string_view text) {
  std::string url;
  for (const char c : text) {
    const bool is_plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                          (c >= '0' && c <= '9') || c == '/' || c == '.' || c == '_' || c == '-';
    url += is_plain ? std::string(1, c) : fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return url;
}

std::string value_of(std::string_view query, std::string_view name) {
  while (!query.empty()) {
    const std::string_view one = query.substr(0, query.find('&'));
    query.remove_prefix(std::min(one.size() + 1, query.size()));
    if (one.starts_with(name) && one.substr(name.size()).starts_with('='))
      return decoded(one.substr(name.size() + 1));
  }
  return {};
}

std::string head_of(std::string_view status, std::size_t bytes, std::string_view headers = {}) {
  return fmt::format("HTTP/1.1 {}\r\nContent-Length: {}\r\n{}\r\n", status, bytes, headers);
}

bool send_all(int client, std::string_view text) {
  while (!text.empty()) {
    const ssize_t sent = ::send(client, text.data(), text.size(), MSG_NOSIGNAL);
    if (sent <= 0) return false;
    text.remove_prefix(static_cast<std::size_t>(sent));
  }
  return true;
}

void sleep(std::chrono::nanoseconds duration, const std::stop_token& stop) {
  std::mutex mutex;
  std::condition_variable_any never;
  std::unique_lock lock(mutex);
  never.wait_for(lock, stop, duration, [] { return false; });
}

}  // namespace

Trouble Troubles::of(const ObjectRead& read) const {
  const std::uint64_t draw = draw_of(*this, read);
  const std::uint64_t kind = mixed(draw);
  double at = static_cast<double>(draw >> 11) * 0x1p-53;
  const auto is_next = [&](double share) {
    at -= share;
    return at < 0;
  };
  if (is_next(busy)) return Trouble::busy;
  if (is_next(busy_for_1s)) return Trouble::busy_for_1s;
  if (is_next(cut)) return Trouble::cut;
  if (is_next(reset)) return Trouble::reset;
  if (is_next(stalls)) return kind % 2 == 0 ? Trouble::stall_body : Trouble::stall;
  if (is_next(slow_starts)) return Trouble::slow_start;
  return Trouble::none;
}

ObjectServer::ObjectServer(Troubles troubles, Decide decide)
    : troubles_(troubles), decide_(std::move(decide)) {
  listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  if (::bind(listener_, reinterpret_cast<sockaddr*>(&address), size) != 0 ||
      ::listen(listener_, 256) != 0 ||
      ::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size) != 0)
    throw std::runtime_error("no port to listen at");
  port_ = ntohs(address.sin_port);
  acceptor_ = std::jthread([this](const std::stop_token& stop) { accept(stop); });
}

ObjectServer::~ObjectServer() {
  acceptor_.request_stop();
  ::shutdown(listener_, SHUT_RDWR);
  acceptor_.join();
  for (std::jthread& thread : threads_) thread.request_stop();
  {
    const std::lock_guard lock(mutex_);
    for (const int client : clients_) ::shutdown(client, SHUT_RDWR);
  }
  threads_.clear();
  ::close(listener_);
}

void ObjectServer::put(const std::string& key, std::string bytes) {
  const std::string etag = fmt::format("\"{:016x}\"", hash_of(bytes));
  const std::lock_guard lock(mutex_);
  objects_[key] = {std::move(bytes), etag};
}

void ObjectServer::misbehave(Troubles troubles, Decide decide) {
  const std::lock_guard lock(mutex_);
  troubles_ = troubles;
  decide_ = std::move(decide);
  asked_.clear();
  reads_.clear();
  counts_ = {};
}

std::string ObjectServer::endpoint() const { return fmt::format("http://127.0.0.1:{}", port_); }

ObjectStorageOptions ObjectServer::options() const {
  return {.endpoint = endpoint(), .anonymous = true};
}

ObjectServer::Counts ObjectServer::counts() const {
  const std::lock_guard lock(mutex_);
  return counts_;
}

std::vector<ObjectRead> ObjectServer::reads() const {
  const std::lock_guard lock(mutex_);
  return reads_;
}

void ObjectServer::accept(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    const int client = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (client < 0) continue;
    const int yes = 1;
    ::setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    {
      const std::lock_guard lock(mutex_);
      clients_.insert(client);
    }
    threads_.emplace_back([this, client](const std::stop_token& end) { serve(client, end); });
  }
}

void ObjectServer::serve(int client, const std::stop_token& stop) {
  std::string received;
  bool goes_on = true;
  while (goes_on && !stop.stop_requested()) {
    std::size_t end = received.find("\r\n\r\n");
    while (end == received.npos) {
      char part[4096];
      const ssize_t count = ::recv(client, part, sizeof part, 0);
      if (count <= 0) break;
      received.append(part, static_cast<std::size_t>(count));
      end = received.find("\r\n\r\n");
    }
    if (end == received.npos) break;
    const std::string request = received.substr(0, end + 4);
    received.erase(0, end + 4);
    const std::string_view line = std::string_view(request).substr(0, request.find("\r\n"));
    const std::size_t blank = line.find(' ');
    const std::string_view method = line.substr(0, blank);
    const std::string_view target =
        line.substr(blank + 1, line.rfind(' ') - std::min(blank + 1, line.rfind(' ')));
    const Reply reply = reply_to(method, target, request);
    Troubles troubles;
    {
      const std::lock_guard lock(mutex_);
      troubles = troubles_;
    }
    const auto base = std::chrono::duration_cast<std::chrono::microseconds>(troubles.latency);
    const auto more = base / 2 * static_cast<int>(mixed(hash_of(request)) % 1000) / 1000;
    sleep(base + more, stop);
    goes_on = send_reply(client, reply, troubles, stop);
  }
  const std::lock_guard lock(mutex_);
  clients_.erase(client);
  ::close(client);
}

bool ObjectServer::send_reply(int client, const Reply& reply, const Troubles& troubles,
                              const std::stop_token& stop) {
  if (reply.trouble == Trouble::reset) return false;
  if (reply.trouble == Trouble::stall) sleep(troubles.stall, stop);
  if (reply.trouble == Trouble::slow_start) sleep(troubles.slow_start, stop);
  const std::string_view body = reply.body;
  std::string_view begin = body;
  if (reply.trouble == Trouble::cut || reply.trouble == Trouble::stall_body)
    begin = body.substr(0, body.size() / 2);
  {  // before a client has them, and asks for the counts
    const std::lock_guard lock(mutex_);
    counts_.bytes += begin.size();
  }
  bool is_sent = send_all(client, reply.head) && send_all(client, begin);
  if (reply.trouble == Trouble::stall_body) {
    sleep(troubles.stall, stop);
    is_sent = is_sent && send_all(client, body.substr(begin.size()));
  }
  return is_sent && reply.trouble != Trouble::cut;
}

ObjectServer::Reply ObjectServer::reply_to(std::string_view method, std::string_view target,
                                           std::string_view request) {
  const std::string_view path = target.substr(0, target.find('?'));
  const std::string_view query = target.substr(std::min(path.size() + 1, target.size()));
  constexpr std::string_view kBucket = "/data";
  const std::lock_guard lock(mutex_);
  if (path == kBucket) return list(query);
  const auto found = path.size() > kBucket.size() + 1 && path.starts_with(kBucket)
                         ? objects_.find(decoded(path.substr(kBucket.size() + 1)))
                         : objects_.end();
  if (found == objects_.end()) return {head_of("404 Not Found", 0)};
  const Object& object = found->second;
  const auto etag = [&] { return fmt::format("ETag: {}\r\n", object.etag); };
  if (method == "HEAD") return {head_of("200 OK", object.bytes.size(), etag())};

  const std::string range = header_of(request, "range");
  ObjectRead read{.key = found->first, .count = object.bytes.size()};
  if (!range.empty()) {
    char* end = nullptr;
    read.offset = std::strtoull(range.c_str() + std::string_view("bytes=").size(), &end, 10);
    const std::uint64_t last = std::strtoull(end + 1, nullptr, 10);
    if (read.offset >= object.bytes.size()) return {head_of("416 Range Not Satisfiable", 0)};
    read.count = std::min<std::uint64_t>(last + 1, object.bytes.size()) - read.offset;
  }
  const std::string wanted = header_of(request, "if-match");
  read.is_conditional = !wanted.empty();
  read.earlier = asked_[{read.key, read.offset}]++;
  reads_.push_back(read);
  const Trouble trouble = decide_ ? decide_(read) : troubles_.of(read);
  ++counts_.reads;
  ++counts_.troubles[trouble];
  if (trouble == Trouble::busy || trouble == Trouble::busy_for_1s) {
    const std::string body =
        "<Error><Code>SlowDown</Code><Message>Reduce your request rate</Message></Error>";
    return {
        head_of("503 Slow Down", body.size(), trouble == Trouble::busy ? "" : "Retry-After: 1\r\n"),
        body};
  }
  if (trouble == Trouble::denied) return {head_of("403 Forbidden", 0)};
  if (!wanted.empty() && wanted != object.etag && !troubles_.ignores_if_match)
    return {head_of("412 Precondition Failed", 0)};
  std::string body = object.bytes.substr(read.offset, read.count);
  const std::size_t bytes = body.size();
  if (range.empty()) return {head_of("200 OK", bytes, etag()), std::move(body), trouble};
  return {head_of("206 Partial Content", bytes,
                  etag() + fmt::format("Content-Range: bytes {}-{}/{}\r\n", read.offset,
                                       read.offset + read.count - 1, object.bytes.size())),
          std::move(body), trouble};
}

ObjectServer::Reply ObjectServer::list(std::string_view query) {
  constexpr int kMost = 1000;
  const std::string prefix = value_of(query, "prefix");
  const bool is_flat = !value_of(query, "delimiter").empty();
  std::string after = decoded(value_of(query, "continuation-token"));
  if (after.empty() && !troubles_.ignores_start_after) after = value_of(query, "start-after");
  ++counts_.lists;
  std::string entries;
  std::string folders;
  std::string last;
  int count = 0;
  auto at = after < prefix ? objects_.lower_bound(prefix) : objects_.upper_bound(after);
  const auto is_inside = [&] { return at != objects_.end() && at->first.starts_with(prefix); };
  while (count < kMost && is_inside()) {
    const auto& [key, object] = *at;
    const std::size_t slash = is_flat ? key.find('/', prefix.size()) : key.npos;
    last = key.substr(0, slash == key.npos ? slash : slash + 1);
    if (slash == key.npos) {
      entries += fmt::format("<Contents><Key>{}</Key><Size>{}</Size><ETag>{}</ETag></Contents>",
                             encoded(key), object.bytes.size(), object.etag);
      ++at;
    } else {
      folders += fmt::format("<CommonPrefixes><Prefix>{}</Prefix></CommonPrefixes>", encoded(last));
      last += '\xff';  // behind what is in it
      at = objects_.lower_bound(last);
    }
    ++count;
  }
  const std::string next = is_inside()
                               ? fmt::format(
                                     "<IsTruncated>true</IsTruncated><NextContinuationToken>{}"
                                     "</NextContinuationToken>",
                                     encoded(last))
                               : "<IsTruncated>false</IsTruncated>";
  const std::string body =
      fmt::format("<ListBucketResult><EncodingType>url</EncodingType>{}{}{}</ListBucketResult>",
                  entries, folders, next);
  return {head_of("200 OK", body.size()), body};
}

}  // namespace penstock::test
