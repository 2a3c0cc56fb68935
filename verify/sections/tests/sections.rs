//! Every test by its name.
#![cfg(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64")
))]

macro_rules! tests {
    ($($module:ident: $($name:ident)*;)*) => {
        $(mod $module {
            $(#[test]
            fn $name() {
                percid_sections::$module::$name();
            })*
        })*
    };
}

tests! {
    acquire: acquire acquire_what_is_closed_or_taken acquire_after_the_shard_was_closed acquire_in_c;
    add: add_in_rust add_in_c;
    add_float: floats_are_added;
    append: append_in_rust append_in_c;
    controls: what_is_no_section_is_found_out what_a_section_does_not_do_is_found_out;
    discard: discard discard_all_but_so_many_bytes;
    stack: push_in_rust push_in_c pop_in_rust pop_in_c;
    tally: a_value_is_counted_and_added whatever_was_counted_last;
    words: words_are_added_to words_are_swapped store_if_equal store_both_if_equal store_if_both_are_equal copy_then_store_if_equal items_are_pushed items_are_popped;
}

#[cfg(not(target_arch = "x86_64"))]
tests! {
    orders: acquire_reads_the_shard_with_acquiring_loads append_publishes_in_order tally_publishes_in_order words_publish_in_order;
}
