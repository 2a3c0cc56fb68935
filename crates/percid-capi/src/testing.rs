//! Functions that only the tests of this interface need: with the feature `testing`, and not in the
//! header.

/// Makes the library treat `count` nodes as having memory, and CPU `c` as part of node `c` modulo
/// `count`. Must be called before a balancer is created.
#[unsafe(no_mangle)]
pub extern "C" fn percid_testing_pretend_nodes(count: u32) {
    percid_numa::testing::pretend_nodes(count);
}
