// A run, as a page and as JSON.
#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <sys/resource.h>

#include <penstock/report/report.hpp>

#include "src/core/json_fields.hpp"
#include "src/core/printable.hpp"
#include "src/core/usable_cores.hpp"
#include "src/core/version.hpp"
#include "src/report/tiers.hpp"

namespace penstock {

namespace {

constexpr double kMiB = 1 << 20;

double per_second(double count, double seconds) { return seconds > 0 ? count / seconds : 0; }
double per_second(std::uint64_t count, double seconds) {
  return per_second(static_cast<double>(count), seconds);
}

// Without padding.
double tokens_per_second(const TokenReport& tokens, const Stats& stats) {
  return per_second(static_cast<double>(stats.samples) * tokens.row_tokens, stats.seconds) *
         (1 - tokens.padding_fraction);
}

nlohmann::json token_json(const TokenReport& tokens, const Stats& stats) {
  return {{"row_tokens", tokens.row_tokens},
          {"row_bytes", tokens.row_bytes},
          {"padding_fraction", tokens.padding_fraction},
          {"tokens_per_s", tokens_per_second(tokens, stats)},
          {"bytes_per_s",
           per_second(static_cast<double>(stats.samples) * tokens.row_bytes, stats.seconds)}};
}

std::string decoders(const JpegReport& jpeg, std::uint64_t delivered) {
  std::string text = fmt::format("Penstock {}", jpeg.counts.own);
  if (jpeg.has_index) text += fmt::format(" ({} by an index)", jpeg.counts.indexed);
  std::uint64_t others = 0;
  std::string reasons;
  for (std::size_t i = 0; i < kJpegFallbacks; ++i) {
    if (jpeg.counts.libjpeg[i] == 0) continue;
    others += jpeg.counts.libjpeg[i];
    reasons += fmt::format("{}{} {}", reasons.empty() ? "" : ", ",
                           to_string(static_cast<JpegFallback>(i)), jpeg.counts.libjpeg[i]);
  }
  if (others != 0) text += fmt::format(", libjpeg-turbo {} ({})", others, reasons);
  if (jpeg.counts.tolerated != 0)
    text += fmt::format(", {} with warnings that were tolerated", jpeg.counts.tolerated);
  if (jpeg.counts.on_gpu != 0) text += fmt::format(", GPUs {}", jpeg.counts.on_gpu);
  if (const std::uint64_t all = jpeg.counts.own + jpeg.counts.on_gpu + others; all > delivered)
    text += fmt::format("; {} of them decoded ahead and not delivered", all - delivered);
  return text;
}

nlohmann::json jpeg_json(const JpegReport& jpeg) {
  using nlohmann::json;
  json libjpeg = json::object();
  for (std::size_t i = 0; i < kJpegFallbacks; ++i)
    libjpeg[std::string(to_string(static_cast<JpegFallback>(i)))] = jpeg.counts.libjpeg[i];
  json object{
      {"own", jpeg.counts.own}, {"indexed", jpeg.counts.indexed}, {"libjpeg", std::move(libjpeg)}};
  if (jpeg.counts.tolerated != 0) object["tolerated"] = jpeg.counts.tolerated;
  if (jpeg.counts.on_gpu != 0) object["on_gpu"] = jpeg.counts.on_gpu;
  object["index"] = jpeg.has_index
                        ? json{{"images", jpeg.index_images}, {"bytes", jpeg.index_bytes}}
                        : json(nullptr);
  return object;
}

}  // namespace

Report Report::of(const Loader& loader) {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  Report report{.stats = loader.stats(),
                .devices = {loader.devices().begin(), loader.devices().end()},
                .device_samples = loader.samples_per_device(),
                .faults = loader.faults(),
                .seed = loader.seed(),
                .peak_rss_mb = static_cast<double>(usage.ru_maxrss) / 1024};
  const core::ControlGroupLimits limits = core::control_group_limits();
  const core::UsableCores cores = core::usable_cores(limits);
  report.cores = static_cast<unsigned>(cores.count);
  report.cores_limit = name_of(cores.limit);
  report.memory_limit_bytes = limits.memory_bytes;
  for (Notice& notice : loader.notices()) report.notices.push_back(std::move(notice.text));
  // Zero where none was asked for.
  if (const Digest digest = loader.digest(); digest != Digest()) report.digest = digest;
  return report;
}

std::string Report::to_text() const {
  std::string text;
  const auto line = [&](std::string_view label, const std::string& value) {
    text += fmt::format("{:<14}{}\n", label, value);
  };
  if (world > 1) line("process", fmt::format("{} of {}", rank, world));
  line("throughput",
       fmt::format("{:.0f} samples/s, {:.1f} MB/s read", per_second(stats.samples, stats.seconds),
                   per_second(stats.bytes_read, stats.seconds) / 1e6));
  line("delivered",
       fmt::format("{} samples in {} steps, {:.2f} s", stats.samples, stats.steps, stats.seconds));
  for (const EpochReport& epoch : epochs)
    line("", fmt::format("epoch {}: {} samples, {:.0f} samples/s", epoch.epoch, epoch.samples,
                         per_second(epoch.samples, epoch.seconds)));
  if (tokens)
    line(
        "tokens",
        fmt::format(
            "{:.2f} million/s without padding, which is {:.1f}% of the rows; {:.2f} GB/s delivered",
            tokens_per_second(*tokens, stats) / 1e6, tokens->padding_fraction * 100,
            per_second(static_cast<double>(stats.samples) * tokens->row_bytes, stats.seconds) /
                1e9));
  line("first batch", fmt::format("{:.0f} ms", stats.first_batch_s * 1e3));

  line("stall",
       fmt::format("{:.1f}% of the time after the first batch", stats.stall_fraction * 100));
  std::string waits;
  for (std::size_t stage = 0; stage < kStages; ++stage)
    if (stats.stages[stage].wait_s >= 0.0005)
      waits += fmt::format("{}{} {:.3f} s", waits.empty() ? "" : ", ",
                           name_of(static_cast<Stage>(stage)), stats.stages[stage].wait_s);
  line("waited for", waits.empty() ? "nothing" : waits);
  line("bottleneck",
       stats.samples == 0 ? advice() : fmt::format("{}: {}", stats.bottleneck(), advice()));

  for (const FunctionTime& time : stats.functions)
    if (time.calls > 0)
      line("", fmt::format("{}: {} calls, {:.3f} s in it, {:.3f} s waiting for {}", time.name,
                           time.calls, time.busy_s, time.wait_s, time.lock));
  if (const RemoteStats& remote = stats.remote; remote.tasks + remote.cancelled > 0)
    line("made elsewhere",
         fmt::format("{} rows in {} tasks, {:.1f} MB; {} tasks were given back", remote.rows,
                     remote.tasks, static_cast<double>(remote.bytes) / 1e6, remote.cancelled));
  const std::vector<std::string> tiers = report::tier_lines(stats);
  for (const std::string& tier : tiers)
    line(&tier == tiers.data() ? "read from" : "", core::printable(tier));
  if (const std::string cache = report::advice_on_cache(stats); !cache.empty())
    line("cache", cache);
  if (const std::string failures = report::advice_on_failures(stats); !failures.empty())
    line("failures", failures);
  if (stats.retries > 0)
    line("read again", fmt::format("{} times, after transient errors", stats.retries));
  line("memory",
       fmt::format("{:.0f} MiB reserved by the loader ({} slots), {:.0f} MiB used by the process{}",
                   static_cast<double>(stats.memory_peak_bytes) / kMiB, stats.slots, peak_rss_mb,
                   memory_limit_bytes ? fmt::format(" of {:.0f} MiB that its control group allows",
                                                    static_cast<double>(*memory_limit_bytes) / kMiB)
                                      : ""));
  if (!cores_limit.empty()) line("cores", fmt::format("{}: {}", cores, cores_limit));
  if (jpeg) line("JPEG decoders", decoders(*jpeg, stats.samples));
  if (jpeg && jpeg->has_index)
    line("JPEG index", fmt::format("{} images, {:.1f} MiB", jpeg->index_images,
                                   static_cast<double>(jpeg->index_bytes) / kMiB));
  std::string parts;
  for (std::size_t device = 0; device < devices.size(); ++device)
    parts += fmt::format("{}{} {}", device == 0 ? "" : ", ", devices[device].to_string(),
                         device_samples[device]);
  line("devices", parts);
  line("seed", std::to_string(seed));
  if (digest) line("digest", digest->to_string());
  for (const std::string& notice : notices) line("data", core::printable(notice));
  if (stats.faults > 0) {
    line("bad samples", fmt::format("{}, those before a resume included", stats.faults));
    constexpr std::size_t kShown = 10;
    for (std::size_t i = 0; i < std::min(faults.size(), kShown); ++i)
      line("", faults[i].to_string());
    if (stats.faults > kShown)
      line("", fmt::format("and {} more (--json lists 100)", stats.faults - kShown));
  }
  return text;
}

std::string Report::to_json() const {
  using nlohmann::json;
  json stages = json::object();
  for (std::size_t stage = 0; stage < kStages; ++stage)
    stages[std::string(name_of(static_cast<Stage>(stage)))] = {
        {"wait_s", stats.stages[stage].wait_s}, {"busy_s", stats.stages[stage].busy_s}};
  json per_epoch = json::array();
  for (const EpochReport& epoch : epochs)
    per_epoch.push_back({{"epoch", epoch.epoch},
                         {"samples", epoch.samples},
                         {"seconds", epoch.seconds},
                         {"samples_per_s", per_second(epoch.samples, epoch.seconds)}});
  json parts = json::array();
  for (std::size_t device = 0; device < devices.size(); ++device)
    parts.push_back({{"name", devices[device].to_string()}, {"samples", device_samples[device]}});
  json list = json::array();
  for (const Fault& fault : faults)
    list.push_back({{"sample", fault.sample.number},
                    {"epoch", fault.sample.epoch},
                    {"step", fault.step},
                    {"row", fault.row},
                    {"file", fault.file},
                    {"offset", fault.offset},
                    {"reason", fault.reason}});
  json moments = json::array();
  for (const Moment& moment : history) {
    json waits = json::object();
    for (std::size_t stage = 0; stage < kStages; ++stage)
      waits[std::string(name_of(static_cast<Stage>(stage)))] = moment.wait_s[stage];
    moments.push_back(
        {{"seconds", moment.seconds}, {"samples", moment.samples}, {"wait_s", waits}});
  }
  json functions = json::array();
  for (const FunctionTime& time : stats.functions)
    functions.push_back({{"name", time.name},
                         {"calls", time.calls},
                         {"busy_s", time.busy_s},
                         {"wait_s", time.wait_s}});
  json tiers = json::array();
  for (const StorageTier& tier : stats.tiers)
    tiers.push_back({{"name", tier.name},
                     {"folder", tier.folder},
                     {"reads", tier.reads},
                     {"bytes", tier.bytes},
                     {"entries", tier.entries},
                     {"held_bytes", tier.held_bytes},
                     {"budget_bytes", tier.budget_bytes},
                     {"requests", tier.requests},
                     {"failures", tier.failures},
                     {"hedges", tier.hedges}});
  const json object{
      {"samples", stats.samples},
      {"steps", stats.steps},
      {"epochs", epochs.size()},
      {"seconds", stats.seconds},
      {"samples_per_s", per_second(stats.samples, stats.seconds)},
      {"per_epoch", std::move(per_epoch)},
      {"bytes_read", stats.bytes_read},
      {"stall_fraction", stats.stall_fraction},
      {"consume_s", stats.consume_s},
      {"first_batch_ms", stats.first_batch_s * 1e3},
      {"bottleneck", stats.bottleneck()},
      {"advice", advice()},
      {"stages", std::move(stages)},
      {"remote",
       {{"rows", stats.remote.rows},
        {"tasks", stats.remote.tasks},
        {"bytes", stats.remote.bytes},
        {"cancelled", stats.remote.cancelled},
        {"wait_s", stats.remote.wait_s},
        {"made_s", stats.remote.made_s},
        {"copy_s", stats.remote.copy_s}}},
      {"functions", std::move(functions)},
      {"tiers", std::move(tiers)},
      {"peak_rss_mb", peak_rss_mb},
      {"budget_peak_mb", static_cast<double>(stats.memory_peak_bytes) / kMiB},
      {"threads", stats.threads},
      {"io_threads", stats.io_threads},
      {"cores", cores},
      {"cores_limit", cores_limit},
      {"memory_limit_mb",
       memory_limit_bytes ? json(static_cast<double>(*memory_limit_bytes) / kMiB) : json(nullptr)},
      {"retries", stats.retries},
      {"seed", seed},
      {"world", world},
      {"devices", std::move(parts)},
      {"tokens", tokens ? token_json(*tokens, stats) : json(nullptr)},
      {"jpeg", jpeg ? jpeg_json(*jpeg) : json(nullptr)},
      {"faults", {{"count", stats.faults}, {"list", std::move(list)}}},
      {"notices", notices},
      {"digest", digest ? json(digest->to_string()) : json(nullptr)},
      {"history", std::move(moments)},
      {"version", core::version()},
  };
  return core::dump_json(core::Json(object), 2);
}

}  // namespace penstock
