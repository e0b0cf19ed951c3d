// penstock sync: collectives and gradient synchronisation, beside the loader. Link penstock::sync.
#pragma once

// In reading order, which is not the alphabet's.
// clang-format off
#include <penstock/sync/replicas.hpp>
#include <penstock/sync/gradient_sync.hpp>
#include <penstock/sync/communicator.hpp>
#include <penstock/sync/rendezvous.hpp>
// clang-format on
