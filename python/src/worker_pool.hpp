// Processes that read items of a Python object, for code that holds the GIL.
//
// Each has a socket, over which requests and answers go, and two blocks of shared memory, into which it
// writes the fields: it works on one item while another is taken from it.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include <penstock/penstock.hpp>

#include "python_object.hpp"

namespace penstock::python {

/// Threads  any number read at once; each waits for its answer without the GIL.
class WorkerPool {
 public:
  /// The processes are started by the first read.
  WorkerPool(ObjectRef items, std::vector<FieldSpec> fields, int workers);
  ~WorkerPool();
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  /// Item `number` as a record; the process seeds random, numpy and torch with `seed` before it asks for it.
  /// A process that dies is replaced, and what it was reading is read again, alone.
  ///
  /// Errors  Error  this process was forked from the one that made the pool
  ///         Fault  what reading it raised; it has ended the process twice; the loader was stopped
  Result<void> read(std::uint64_t number, std::uint64_t seed, Record& record);

 private:
  struct Block;
  struct Worker;
  struct Place {
    Worker* worker = nullptr;
    std::size_t block = 0;
    std::uint64_t ticket = 0;
  };
  enum class End { answered, died, stopped };

  Place take(const Record& record, bool alone);
  void start(Worker& worker);
  void give_back(const Place& place);
  End wait_for_turn(const Place& place, const Record& record);
  // With mutex_ held:
  void bury(Worker& worker);
  void drop_abandoned(Worker& worker);
  static void abandon(const Place& place);
  End ask(const Place& place, std::uint64_t number, std::uint64_t seed, Record& record,
          Result<void>& result);

  ObjectRef items_;
  std::vector<FieldSpec> fields_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::unique_ptr<Worker>> workers_;
  int generation_ = fork_generation();
};

/// The loop of such a process, until its socket ends. Needs the GIL.
void serve_items(nb::object items, const std::vector<FieldSpec>& fields, int socket,
                 const std::vector<int>& blocks, nb::object seed);

}  // namespace penstock::python
