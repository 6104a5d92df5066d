//! A binary heap of queued pods with an index by key, step for step as Go's
//! `container/heap` moves its elements, because that decides between pods of equal rank.
//!
//! Upstream: `pkg/scheduler/backend/heap/heap.go`.

use std::sync::Arc;

use hashbrown::HashMap;

use crate::engine::pod::{NamespacedName, QueuedPod};

/// Whether the first pod comes before the second.
pub(super) type Less<'a> = &'a dyn Fn(&QueuedPod, &QueuedPod) -> bool;

/// The heap. Every operation that moves elements is told the order, which must always be
/// the same one.
#[derive(Clone, Default)]
pub(super) struct Heap {
    pods: Vec<Arc<QueuedPod>>,
    index: HashMap<NamespacedName, usize>,
}

impl Heap {
    /// How many pods there are.
    pub(super) fn len(&self) -> usize {
        self.pods.len()
    }

    /// The pod of that key.
    pub(super) fn get(&self, key: NamespacedName) -> Option<&Arc<QueuedPod>> {
        self.pods.get(*self.index.get(&key)?)
    }

    /// Whether there is a pod of that key.
    pub(super) fn contains(&self, key: NamespacedName) -> bool {
        self.index.contains_key(&key)
    }

    /// The first pod.
    pub(super) fn peek(&self) -> Option<&Arc<QueuedPod>> {
        self.pods.first()
    }

    /// Adds a pod, or replaces the one of the same key and fixes its position.
    pub(super) fn add_or_update(&mut self, pod: Arc<QueuedPod>, less: Less<'_>) {
        match self.index.get(&pod.key()).copied() {
            Some(at) => {
                self.pods[at] = pod;
                self.fix(at, less);
            }
            None => {
                let at = self.pods.len();
                self.index.insert(pod.key(), at);
                self.pods.push(pod);
                self.up(at, less);
            }
        }
    }

    /// Takes the first pod out.
    pub(super) fn pop(&mut self, less: Less<'_>) -> Option<Arc<QueuedPod>> {
        let last = self.pods.len().checked_sub(1)?;
        self.swap(0, last);
        self.down(0, last, less);
        self.take_last()
    }

    /// Takes the pod of that key out.
    pub(super) fn remove(&mut self, key: NamespacedName, less: Less<'_>) -> Option<Arc<QueuedPod>> {
        let at = *self.index.get(&key)?;
        let last = self.pods.len() - 1;
        if at != last {
            self.swap(at, last);
            if !self.down(at, last, less) {
                self.up(at, less);
            }
        }
        self.take_last()
    }

    /// The pods in the order in which they would be popped.
    pub(super) fn in_order(&self, less: Less<'_>) -> Vec<&QueuedPod> {
        let mut rest: Vec<&QueuedPod> = self.pods.iter().map(Arc::as_ref).collect();
        let mut order = Vec::with_capacity(rest.len());
        while let Some(last) = rest.len().checked_sub(1) {
            rest.swap(0, last);
            sift_down(
                0,
                last,
                &mut rest,
                |pods, i, j| less(pods[i], pods[j]),
                |pods, i, j| pods.swap(i, j),
            );
            order.extend(rest.pop());
        }
        order
    }

    fn take_last(&mut self) -> Option<Arc<QueuedPod>> {
        let pod = self.pods.pop()?;
        self.index.remove(&pod.key());
        Some(pod)
    }

    fn swap(&mut self, i: usize, j: usize) {
        self.pods.swap(i, j);
        for at in [i, j] {
            self.index.insert(self.pods[at].key(), at);
        }
    }

    fn fix(&mut self, at: usize, less: Less<'_>) {
        if !self.down(at, self.pods.len(), less) {
            self.up(at, less);
        }
    }

    fn up(&mut self, mut at: usize, less: Less<'_>) {
        while at > 0 {
            let parent = (at - 1) / 2;
            if !less(&self.pods[at], &self.pods[parent]) {
                break;
            }
            self.swap(parent, at);
            at = parent;
        }
    }

    fn down(&mut self, start: usize, end: usize, less: Less<'_>) -> bool {
        let before =
            |heap: &Heap, i: usize, j: usize| less(heap.pods[i].as_ref(), heap.pods[j].as_ref());
        sift_down(start, end, self, before, Heap::swap)
    }
}

/// Go's `down`: sinks the element at `start` within the first `end` elements, and says
/// whether it moved.
fn sift_down<T>(
    start: usize,
    end: usize,
    heap: &mut T,
    before: impl Fn(&T, usize, usize) -> bool,
    mut swap: impl FnMut(&mut T, usize, usize),
) -> bool {
    let mut at = start;
    loop {
        let left = 2 * at + 1;
        if left >= end {
            break;
        }
        let right = left + 1;
        let child = if right < end && before(heap, right, left) { right } else { left };
        if !before(heap, child, at) {
            break;
        }
        swap(heap, at, child);
        at = child;
    }
    at > start
}
