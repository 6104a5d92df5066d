;; Filter: rejects the pod where the node is not labelled with the pod's name, searching both
;; objects as they come, in protobuf: the pod's name is the first field of its first field.
(module
  (import "k8s.io/scheduler" "currentPod" (func $pod (param i32 i32) (result i32)))
  (import "k8s.io/scheduler" "currentNodeName" (func $node_name (param i32 i32) (result i32)))
  (import "k8s.io/api" "node" (func $node (param i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 1)
  (func (export "filter") (result i32)
    (local $at i32) (local $end i32) (local $same i32)
    (drop (call $pod (i32.const 1000) (i32.const 1000)))
    ;; Does not fit, so that nothing is written and only the length is known.
    (if (i32.le_u (call $pod (i32.const 0) (i32.const 1)) (i32.const 1)) (then unreachable))
    (local.set $end
      (i32.add
        (i32.const 3000)
        (call $node
          (i32.const 100) (call $node_name (i32.const 100) (i32.const 100))
          (i32.const 3000) (i32.const 1000))))
    (local.set $at (i32.const 3000))
    ;; Four bytes of the pod's name, behind two tags and two lengths.
    (loop $next
      (if (i32.eq (i32.load (local.get $at)) (i32.load (i32.const 1004)))
        (then (return (i32.const 0))))
      (local.set $at (i32.add (local.get $at) (i32.const 1)))
      (br_if $next (i32.lt_u (local.get $at) (local.get $end))))
    (i32.const 2)))
