#include "src/sync/rendezvous/launch_key.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <random>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <penstock/core/error.hpp>

#ifdef PENSTOCK_HAVE_OPENSSL
#include "src/core/hmac_sha256.hpp"
#else
#include <penstock/core/random.hpp>
#endif

namespace penstock::sync {

namespace {

constexpr std::size_t kShortestSecret = 16;
constexpr std::size_t kLongestSecret = 4096;

std::string_view variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

struct LauncherId {
  std::string text;
  bool is_of_one_launch = false;
};

// torchrun without --rdzv-id calls every run "none". All launches in one script of sbatch have its job.
LauncherId id_of_the_launcher() {
  LauncherId id;
  for (const std::string_view name :
       {"TORCHELASTIC_RUN_ID", "PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid", "SLURM_JOB_ID",
        "SLURM_STEP_ID", "PENSTOCK_RUN_ID"})
    if (const std::string_view value = variable(name.data()); !value.empty() && value != "none") {
      id.text += fmt::format("{}={};", name, value);
      id.is_of_one_launch = id.is_of_one_launch || name != "SLURM_JOB_ID";
    }
  return id;
}

std::string secret_of(const RendezvousOptions& options) {
  std::string secret = options.secret;
  std::string where = "the option 'secret'";
  if (secret.empty()) {
    secret = variable("PENSTOCK_SECRET");
    where = "PENSTOCK_SECRET";
  }
  if (const std::string_view file = variable("PENSTOCK_SECRET_FILE");
      secret.empty() && !file.empty()) {
    std::ifstream in{std::string(file)};
    secret.resize(kLongestSecret);
    in.read(secret.data(), static_cast<std::streamsize>(secret.size()));
    secret.resize(static_cast<std::size_t>(in.gcount()));
    secret.resize(std::min(secret.find_first_of("\r\n"), secret.size()));
    if (!in && !in.eof())
      throw Error(fmt::format("the file '{}' of PENSTOCK_SECRET_FILE cannot be read: {}", file,
                              std::strerror(errno)));
    where = fmt::format("the file '{}' of PENSTOCK_SECRET_FILE", file);
    if (secret.empty()) throw Error(fmt::format("{} is empty", where));
  }
  if (secret.empty()) return secret;
  if (secret.size() < kShortestSecret)
    throw Error(
        fmt::format("a secret has at least {} characters, found {} in {}: make one with "
                    "'openssl rand -hex 32'",
                    kShortestSecret, secret.size(), where));
#ifndef PENSTOCK_HAVE_OPENSSL
  throw Error(
      fmt::format("{} gives a secret, and this build has no OpenSSL to prove it with", where));
#endif
  return secret;
}

std::string prove(const LaunchKey& key, const std::string& text) {
#ifdef PENSTOCK_HAVE_OPENSSL
  return fmt::format("{:02x}", fmt::join(core::hmac_sha256(key.bytes, text), ""));
#else
  return hash_text(key.bytes + '\0' + text);
#endif
}

}  // namespace

LaunchKey launch_key(const RendezvousOptions& options, std::uint16_t port) {
  const auto [id, is_of_one_launch] =
      options.run_id.empty() ? id_of_the_launcher() : LauncherId{options.run_id, true};
  const std::string secret = secret_of(options);
  // A restart is another launch of the same run.
  const std::string_view restart =
      options.run_id.empty() ? variable("TORCHELASTIC_RESTART_COUNT") : "";
  return {.bytes = fmt::format("{} {} {}{} {}", port, id.size(), id, restart, secret),
          .has_id = is_of_one_launch,
          .has_secret = !secret.empty()};
}

LaunchKey ticket_key(std::string token) {
  return {.bytes = std::move(token), .has_id = true, .has_secret = true};
}

std::string make_nonce() {
  std::random_device random;
  return fmt::format("{:08x}{:08x}{:08x}{:08x}", random(), random(), random(), random());
}

std::string proof_of_host(const LaunchKey& key, std::string_view its_nonce,
                          std::string_view own_nonce) {
  return prove(key, fmt::format("process 0 {} {}", its_nonce, own_nonce));
}

std::string proof_of_guest(const LaunchKey& key, std::string_view host_nonce,
                           std::string_view its_nonce, std::uint32_t rank, std::uint32_t world) {
  return prove(key, fmt::format("process {} of {} {} {}", rank, world, host_nonce, its_nonce));
}

const char* proof_method() noexcept {
#ifdef PENSTOCK_HAVE_OPENSSL
  return "hmac-sha256";
#else
  return "none";
#endif
}

bool are_equal(std::string_view a, std::string_view b) noexcept {
  if (a.size() != b.size()) return false;
  unsigned differences = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    differences |=
        static_cast<unsigned>(static_cast<unsigned char>(a[i]) ^ static_cast<unsigned char>(b[i]));
  return differences == 0;
}

}  // namespace penstock::sync
