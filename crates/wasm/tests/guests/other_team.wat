;; Filter: rejects nodes whose names do not begin with the letter in its configuration.
(module
  (import "k8s.io/scheduler" "currentNodeName" (func $node_name (param i32 i32) (result i32)))
  (import "k8s.io/scheduler" "get_config" (func $config (param i32 i32) (result i32)))
  (import "k8s.io/scheduler" "result.status_reason" (func $reason (param i32 i32)))
  (memory (export "memory") 1)
  (data (i32.const 0) "node is another team's")
  (func (export "filter") (result i32)
    (drop (call $node_name (i32.const 100) (i32.const 100)))
    (drop (call $config (i32.const 200) (i32.const 100)))
    (if (i32.eq (i32.load8_u (i32.const 100)) (i32.load8_u (i32.const 200)))
      (then (return (i32.const 0))))
    (call $reason (i32.const 0) (i32.const 22))
    (i32.const 3)))
