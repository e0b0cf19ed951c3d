// penstock sync: collectives and gradient synchronisation, beside the loader. Link penstock::sync.
#pragma once

// In reading order, which is not the alphabet's.
// clang-format off
#include <penstock/sync/replicas.hpp>
#include <penstock/sync/gradient_sync.hpp>
#include <penstock/sync/communicator.hpp>
#include <penstock/sync/exchange.hpp>
#include <penstock/sync/mirrored.hpp>
#include <penstock/sync/placement.hpp>
#include <penstock/sync/rendezvous.hpp>
#include <penstock/sync/mpi.hpp>
#include <penstock/sync/gloo.hpp>
#include <penstock/sync/nccl.hpp>
// clang-format on
