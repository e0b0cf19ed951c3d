// sync/rendezvous/launch_key: how the processes of a launch know each other.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <penstock/sync/rendezvous.hpp>

namespace penstock::sync {

/// What all processes of a launch know, and no other program: it is never sent, only proven.
struct LaunchKey {
  std::string bytes;
  bool has_id = false;      ///< tells this launch from another one of the same command
  bool has_secret = false;  ///< strangers cannot know it
};

/// From the options, or else from the launcher's variables, PENSTOCK_RUN_ID, PENSTOCK_SECRET and PENSTOCK_SECRET_FILE; and
/// from the port that all processes of the launch were given. Process 0 may listen at one of the next ports, where another
/// launch's processes look for theirs.
///
/// Errors  Error  the secret is short, or its file cannot be read; a secret in a build without OpenSSL
[[nodiscard]] LaunchKey launch_key(const RendezvousOptions& options, std::uint16_t port);
/// A key that only the processes that read the ticket know.
[[nodiscard]] LaunchKey ticket_key(std::string token);

/// A number of 128 bits that was never used before, in hexadecimal digits.
[[nodiscard]] std::string make_nonce();

/// A handshake has two: process 0's, and that of the process that joins it. HMAC-SHA256 (RFC 2104) of both nonces under
/// the key; a hash without security where the build has no OpenSSL.
[[nodiscard]] std::string proof_of_host(const LaunchKey& key, std::string_view its_nonce,
                                        std::string_view own_nonce);
[[nodiscard]] std::string proof_of_guest(const LaunchKey& key, std::string_view host_nonce,
                                         std::string_view its_nonce, std::uint32_t rank,
                                         std::uint32_t world);
/// Which of the two this build makes.
[[nodiscard]] const char* proof_method() noexcept;
/// In a time that does not depend on where they differ.
[[nodiscard]] bool are_equal(std::string_view a, std::string_view b) noexcept;

}  // namespace penstock::sync
