// penstock: from files on disk to batches on every device. Read the parts in this order.
//
// order → source → transform → batch → staging → device → loader        (beside it: sync, in <penstock/sync.hpp>)
// numbers  bytes    sample      block    slot      GPU      iterator
#pragma once

#if __cplusplus < 202002L
#error "penstock needs C++20: -std=c++20, or target_compile_features(app PRIVATE cxx_std_20)"
#endif

// In reading order, which is not the alphabet's.
// clang-format off

// Start here: the plan, and the iterator that runs it.
#include <penstock/loader/dataset.hpp>
#include <penstock/loader/loader.hpp>
#include <penstock/loader/device_loader.hpp>
#include <penstock/loader/options.hpp>
#include <penstock/loader/plan_json.hpp>
#include <penstock/loader/state.hpp>
#include <penstock/loader/stats.hpp>
#include <penstock/loader/step.hpp>
#include <penstock/report/report.hpp>
#include <penstock/loader/dlpack.hpp>

// What a sample goes through.
#include <penstock/order/mix.hpp>
#include <penstock/source/source.hpp>
#include <penstock/source/field_name.hpp>
#include <penstock/source/images.hpp>
#include <penstock/source/shards.hpp>
#include <penstock/source/webdataset.hpp>
#include <penstock/source/tfrecord.hpp>
#include <penstock/source/arrays.hpp>
#include <penstock/source/tokens.hpp>
#include <penstock/sequence/blocks.hpp>
#include <penstock/sequence/pack.hpp>
#include <penstock/sequence/buckets.hpp>
#include <penstock/source/stream.hpp>
#include <penstock/source/record.hpp>
#include <penstock/source/queue.hpp>
#include <penstock/source/remote_queue.hpp>
#include <penstock/source/generator.hpp>
#include <penstock/transform/crop.hpp>
#include <penstock/transform/crop_image.hpp>
#include <penstock/transform/decode_image.hpp>
#include <penstock/transform/decode_views.hpp>
#include <penstock/augment/augmentation.hpp>
#include <penstock/augment/policies.hpp>
#include <penstock/transform/augment_image.hpp>
#include <penstock/transform/pad.hpp>
#include <penstock/transform/transform.hpp>
#include <penstock/jpeg/decoder.hpp>
#include <penstock/jpeg/jpeg_index.hpp>
#include <penstock/jpeg/shared_jpeg_index.hpp>
#include <penstock/jpeg/transcode_jpeg.hpp>
#include <penstock/prepare/prepare.hpp>
#include <penstock/prepare/image_sizes.hpp>
#include <penstock/transform/shrink_jpeg.hpp>
#include <penstock/batch/slicing.hpp>
#include <penstock/device/device.hpp>
#include <penstock/gpu_jpeg/batch_decoder.hpp>
#include <penstock/device/dlpack.hpp>
#include <penstock/device/device_transform.hpp>

// The types that all of them use.
#include <penstock/core/agreement.hpp>
#include <penstock/core/description.hpp>
#include <penstock/core/digest.hpp>
#include <penstock/core/tensor.hpp>
#include <penstock/core/error.hpp>
#include <penstock/core/geometry.hpp>
#include <penstock/core/interruptible.hpp>
#include <penstock/core/launcher.hpp>
#include <penstock/core/random.hpp>
#include <penstock/core/range.hpp>
#include <penstock/core/sample_id.hpp>
#include <penstock/core/write_file.hpp>
// clang-format on
