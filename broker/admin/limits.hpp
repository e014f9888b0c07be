#pragma once

#include <chrono>
#include <cstddef>

// What the admin door takes and holds at most.

namespace stoat::broker::admin {

// --- the door ---
// Connections beyond it are closed as they come in.
inline constexpr std::size_t kMaxSessions = 128;
inline constexpr std::size_t kMaxHttpHeaderBytes = 16 * 1024;
// From connect to the end of the request, and for a WebSocket session to the login:
// Config::handshake_timeout_ms.
// A WebSocket peer that neither speaks nor answers a ping is given up after this.
inline constexpr std::chrono::seconds kIdleTimeout{120};
// What a peer still sends after its request was answered is read and dropped, this far.
inline constexpr std::size_t kMaxDroppedBytes = 256 * 1024;
inline constexpr std::chrono::milliseconds kCloseTimeout{1'000};

// --- one session ---
inline constexpr std::size_t kMaxLoginMessageBytes = 4 * 1024;
inline constexpr std::size_t kMaxMessageBytes = 8u << 20;
inline constexpr std::size_t kMaxBatchRequests = 100;
// A batch whose answers have grown past this answers the rest of its requests with an error.
inline constexpr std::size_t kMaxBatchAnswerBytes = 16u << 20;
inline constexpr std::size_t kMaxSubscriptions = 16;
inline constexpr std::chrono::milliseconds kMinInterval{100};
inline constexpr std::chrono::milliseconds kMaxInterval{3'600'000};
inline constexpr std::chrono::milliseconds kDefaultInterval{1'000};
// The write queue: one answer and one notification. A request is not read before the answer to the
// one before it is on its way, and a notification is not made before the last one is.
inline constexpr std::size_t kMaxQueuedTexts = 2;

// --- lists ---
inline constexpr std::size_t kDefaultPage = 1'000;
inline constexpr std::size_t kMaxPage = 10'000;
// A page ends early once names and arguments have come to this.
inline constexpr std::size_t kMaxPageBytes = 2u << 20;
// What is asked of a worker in one go.
inline constexpr std::size_t kSliceQueues = 256;
inline constexpr std::size_t kSliceBytes = 256 * 1024;

// Subscribers to stats share a sample that is no older than this.
inline constexpr std::chrono::milliseconds kSampleAge{100};

}  // namespace stoat::broker::admin
