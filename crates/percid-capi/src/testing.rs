//! What the tests of this interface need and no other thread: behind the feature `testing`, and not
//! in the header.

/// Makes the library believe that `count` nodes have memory, and that CPU `c` is on node `c` modulo
/// that. To be called before a balancer is made.
#[unsafe(no_mangle)]
pub extern "C" fn percid_testing_pretend_nodes(count: u32) {
    percid_numa::testing::pretend_nodes(count);
}
