//! Tests of the allocator: facts of upstream's table, with its values.
