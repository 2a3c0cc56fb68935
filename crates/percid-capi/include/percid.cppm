/*
 * percid.cppm: percid.hpp as a module of C++20: `import percid;`. Compile it once, as the other files
 * of the program are compiled:
 *
 *     clang++ -std=c++20 $(pkg-config --cflags percid) --precompile percid.cppm -o percid.pcm
 *     clang++ -std=c++20 -fmodule-file=percid=percid.pcm program.cpp percid.pcm $(pkg-config --libs percid)
 *
 * Needs clang 16 or later (tried with 19). Earlier ones, and gcc before 15, do not find what a module
 * exports by `using`. Macros are no part of modules: who needs PERCID_ names includes percid.h too.
 */
module;

#include "percid.hpp"

export module percid;

export namespace percid {

using percid::source;
using percid::name;
using percid::version;
using percid::init;
using percid::reason;
using percid::current_id;
using percid::kernel_numbers;
using percid::read_kernel_numbers;
using percid::light_fence;
using percid::fence_is_asymmetric;
using percid::fence_all;
using percid::fence_cpu;
using percid::compact_ids;
using percid::set_id_limit;
using percid::source_error;
using percid::selection_reason;
using percid::read_selection_reason;
using percid::source_by_name;
using percid::prepare;
using percid::id_count;
using percid::table_stats;
using percid::read_table_stats;
using percid::range;
using percid::memory_of;
using percid::machine;
using percid::read_machine;
using percid::cpu;
using percid::read_cpus;
using percid::kernel_probe;
using percid::probe_machine;
using percid::static_counter;
using percid::counter;
using percid::bucket;
using percid::snapshot;
using percid::static_histogram;
using percid::histogram;
using percid::unbounded;
using percid::stack;
using percid::static_stack;
using percid::pooled;
using percid::pool;
using percid::static_pool;
using percid::guard;
using percid::local;
using percid::static_local;
using percid::overflow;
using percid::is_record;
using percid::event;
using percid::ring;
using percid::consumer;
using percid::static_ring;
using percid::mask;
using percid::static_mask;
using percid::word;
using percid::pointer;
using percid::bytes;
using percid::field;
using percid::element;
using percid::outcome;
using percid::per_id;
using percid::static_per_id;
using percid::rw_lock;
using percid::rcu_domain;
using percid::rcu_guard;
using percid::budget;
using percid::format;
using percid::content_type;
using percid::accepted;
using percid::counter_series;
using percid::float_counter;
using percid::gauge;
using percid::buckets;
using percid::family_settings;
using percid::label_value;
using percid::registry;
using percid::family;

namespace numa {

using percid::numa::rules;
using percid::numa::access;
using percid::numa::skip_reason;
using percid::numa::name;
using percid::numa::settings;
using percid::numa::event;
using percid::numa::passed;
using percid::numa::batch;
using percid::numa::totals;
using percid::numa::figures;
using percid::numa::on_node;
using percid::numa::failure;
using percid::numa::report;
using percid::numa::balancer;
using percid::numa::region;
using percid::numa::id_regions;
using percid::numa::pool_regions;
using percid::numa::order;
using percid::numa::exclusion;

} // namespace numa

} // namespace percid
