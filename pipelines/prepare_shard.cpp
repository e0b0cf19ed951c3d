#include "prepare_shard.hpp"

#include <algorithm>
#include <exception>
#include <memory>
#include <optional>

#include <fmt/format.h>
#include <tbb/enumerable_thread_specific.h>
#include <tbb/parallel_pipeline.h>

namespace prepare {

namespace ps = penstock;

namespace {

const char* extension_of(std::span<const std::byte> image) {
  const auto begins = [&](std::string_view text, std::size_t at = 0) {
    return image.size() >= at + text.size() &&
           std::equal(text.begin(), text.end(), image.begin() + static_cast<std::ptrdiff_t>(at),
                      [](char a, std::byte b) { return std::byte(a) == b; });
  };
  if (begins("\x89PNG")) return "png";
  if (begins("RIFF") && begins("WEBP", 8)) return "webp";
  return "jpg";
}

struct Prepared {
  Sample sample;
  std::optional<ps::JpegIndex> index;
  ps::JpegKey key;
  Report report;
  std::exception_ptr error;
};

// Shrinks the image where it is to be, then re-marks it. Why it stays as it is, if it does.
std::string prepare_jpeg(const Options& options, std::vector<std::byte>& image, Report& report) {
  if (options.longest_side > 0) {
    auto shrunk =
        ps::shrink_jpeg(image, {.longest_side = options.longest_side, .quality = options.quality});
    if (!shrunk) return "bad: " + shrunk.fault().reason;
    if (!shrunk->kept) {
      image = std::move(shrunk->bytes);
      report.shrunk = 1;
    }
  }
  auto made = ps::transcode_jpeg(image, {.interval = options.interval});
  if (!made) return "bad: " + made.fault().reason;
  image = std::move(made->bytes);
  return made->kept;
}

// Reads one record and makes of its image what can be made of it.
Prepared prepare_one(const Options& options, const Input& input, std::uint64_t number,
                     ps::Record& record) {
  Prepared done;
  const auto list = [&](const std::string& what) {
    done.report.listed.push_back(fmt::format("{}: {}", input.location(number), what));
  };
  auto read = input.read(number, record);
  if (!read) {
    ps::Fault fault = std::move(read.fault());
    if (!options.skip_bad) {
      fault.sample.number = number;
      if (fault.file.empty()) fault.file = input.location(number);
      throw ps::DataError(std::move(fault),
                          "repair or remove the file, or leave such records out with --skip-bad");
    }
    done.report.left_out = 1;
    list("left out, " + fault.reason);
    return done;
  }
  done.sample = std::move(*read);
  done.report.samples = 1;
  done.report.bytes_in = done.sample.image.size();
  std::string kept;
  if (std::string_view(extension_of(done.sample.image)) != "jpg")
    kept = "no JPEG";
  else
    kept = prepare_jpeg(options, done.sample.image, done.report);
  done.report.bytes_out = done.sample.image.size();
  done.index = ps::build_jpeg_index(done.sample.image);
  if (done.index) {
    done.key = ps::JpegKey::of(done.sample.image);
    done.report.indexed = 1;
  }
  if (kept.empty()) {
    done.report.remarked = 1;
  } else {
    done.report.kept[kept.starts_with("bad: ") ? "bad" : kept] = 1;
    list("packed as it is, " + kept);
  }
  return done;
}

}  // namespace

std::string ShardWriter::own_key(std::string key) {
  while (key.starts_with("__") && key.find('/') != std::string::npos &&
         key.substr(0, key.find('/')).ends_with("__"))
    key.erase(0, 1);
  while (!keys_.insert(key).second) key += "_";
  return key;
}

void ShardWriter::add(const Sample& sample, std::string_view extension) {
  const std::string key = own_key(sample.key);
  const auto put = [&](std::string_view ending, std::span<const std::byte> bytes) {
    const std::string name = fmt::format("{}.{}", key, ending);
    tar_.add(name, bytes);
    members_.emplace_back(tar_.bytes(), name);
  };
  put(extension, sample.image);
  for (const Member& member : sample.others) put(member.extension, member.bytes);
}

std::string ShardWriter::member_at(std::uint64_t offset) const {
  // bytes() counts the end of the file, too.
  constexpr std::uint64_t kEndBytes = 1024;
  const auto found = std::ranges::upper_bound(members_, offset + kEndBytes, {},
                                              [](const auto& member) { return member.first; });
  return found == members_.end() ? "the end of the file" : found->second;
}

// Reads and prepares on all threads, and writes in order, while the next ones are prepared.
Report write_shard(const Options& options, const Input& input, std::uint64_t first,
                   std::uint64_t last, ShardWriter* shard, ps::JpegIndexStore& index,
                   ProgressLine& line) {
  constexpr std::size_t kAhead = 4;  // for each thread: what it costs in memory
  Report report;
  tbb::enumerable_thread_specific<ps::Record> records;
  std::uint64_t next = first;
  const auto number = [&](tbb::flow_control& flow) {
    if (next == last) flow.stop();
    return next == last ? last : next++;
  };
  const auto prepare = [&](std::uint64_t at) {
    auto done = std::make_shared<Prepared>();
    try {
      *done = prepare_one(options, input, at, records.local());
    } catch (...) {  // thrown in order: always the first one of a run
      done->error = std::current_exception();
    }
    return done;
  };
  std::uint64_t written = first;
  const auto write = [&](const std::shared_ptr<Prepared>& one) {
    if (one->error) std::rethrow_exception(one->error);
    line.update(++written);
    report += one->report;
    if (one->report.left_out > 0 || shard == nullptr) return;
    if (one->index) index.put(one->key, std::move(*one->index));
    shard->add(one->sample, extension_of(one->sample.image));
  };
  tbb::parallel_pipeline(
      kAhead * static_cast<std::size_t>(options.threads),
      tbb::make_filter<void, std::uint64_t>(tbb::filter_mode::serial_in_order, number) &
          tbb::make_filter<std::uint64_t, std::shared_ptr<Prepared>>(tbb::filter_mode::parallel,
                                                                     prepare) &
          tbb::make_filter<std::shared_ptr<Prepared>, void>(tbb::filter_mode::serial_in_order,
                                                            write));
  return report;
}

}  // namespace prepare
