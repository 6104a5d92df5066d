;; PreFilter: only the nodes b and c; Permit: waits for five seconds; and registers for new nodes.
(module
  (import "k8s.io/scheduler" "result.node_names" (func $node_names (param i32 i32)))
  (import "k8s.io/scheduler" "result.cluster_events" (func $events (param i32 i32)))
  (memory (export "memory") 1)
  (data (i32.const 0) "c\00b\00")
  (data (i32.const 8) "\01\00\00\00\01\00\00\00")
  (func (export "enqueue")
    (call $events (i32.const 8) (i32.const 8)))
  (func (export "prefilter") (result i32)
    (call $node_names (i32.const 0) (i32.const 4))
    (i32.const 0))
  (func (export "permit") (result i64)
    (i64.or (i64.shl (i64.const 4) (i64.const 32)) (i64.const 5000))))
