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
#include <penstock/plan/dataset.hpp>
#include <penstock/loader/loader.hpp>
#include <penstock/plan/options.hpp>
#include <penstock/plan/plan_json.hpp>
#include <penstock/report/report.hpp>

// What a sample goes through.
#include <penstock/order/mix.hpp>
#include <penstock/source/source.hpp>
#include <penstock/source/images.hpp>
#include <penstock/source/annotations.hpp>
#include <penstock/source/partners.hpp>
#include <penstock/source/shards.hpp>
#include <penstock/source/tables.hpp>
#include <penstock/source/mds.hpp>
#include <penstock/source/arrays.hpp>
#include <penstock/source/tokens.hpp>
#include <penstock/sequence/pack.hpp>
#include <penstock/sequence/buckets.hpp>
#include <penstock/source/stream.hpp>
#include <penstock/transform/crop.hpp>
#include <penstock/transform/decode_image.hpp>
#include <penstock/transform/instances.hpp>
#include <penstock/augment/augmentation.hpp>
#include <penstock/transform/augment_image.hpp>
#include <penstock/transform/transform.hpp>
#include <penstock/jpeg/decoder.hpp>
#include <penstock/jpeg/jpeg_index.hpp>
#include <penstock/jpeg/transcode_jpeg.hpp>
#include <penstock/prepare/prepare.hpp>
#include <penstock/transform/shrink_jpeg.hpp>
#include <penstock/batch/slicing.hpp>
#include <penstock/device/device.hpp>
#include <penstock/gpu_jpeg/batch_decoder.hpp>
#include <penstock/device/dlpack.hpp>
#include <penstock/device/device_transform.hpp>

// The types that all of them use.
#include <penstock/core/image_fields.hpp>
#include <penstock/core/tensor.hpp>
#include <penstock/core/error.hpp>
#include <penstock/core/random.hpp>
#include <penstock/core/process.hpp>
#include <penstock/core/progress.hpp>
#include <penstock/core/description.hpp>
// clang-format on
