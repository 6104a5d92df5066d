//! The pods of a node, as a list whose copies share what did not change.
//!
//! Each cycle copies a node twice: when it assumes a pod there, and when the bound pod arrives.
//! With tens of thousands of pods on one node, copies of a plain list cost more than all else.

use std::sync::Arc;

use crate::pod::PodInfo;
use kubestep_api::Uid;

/// Pods per chunk: what a change in the middle of the list copies.
const CHUNK: usize = 64;

type Chunk = Arc<[Arc<PodInfo>]>;

/// Pods in order, at positions from 0.
#[derive(Clone, Default, PartialEq, Debug)]
pub struct PodList {
    /// All pods but the last ones, in chunks of the same length.
    chunks: Vec<Chunk>,
    /// The last pods, at most one chunk; empty only if the list is.
    last: Vec<Arc<PodInfo>>,
}

impl PodList {
    /// The pods, in order.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<PodInfo>> {
        self.chunks.iter().flat_map(|chunk| chunk.iter()).chain(&self.last)
    }

    /// How many pods there are.
    pub fn len(&self) -> usize {
        self.chunks.len() * CHUNK + self.last.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.last.is_empty()
    }

    /// Adds a pod at the end.
    pub(super) fn push(&mut self, pod: Arc<PodInfo>) {
        if self.last.len() == CHUNK {
            self.chunks.push(self.last.drain(..).collect());
        }
        self.last.push(pod);
    }

    /// Removes the pod with that UID; the last one moves to its position.
    pub(super) fn swap_out(&mut self, uid: Uid) -> Option<Arc<PodInfo>> {
        // Mostly it is one that was added lately: an assumed pod that is now bound.
        let sought = |pod: &Arc<PodInfo>| pod.uid() == uid;
        if let Some(at) = self.last.iter().rposition(sought) {
            let removed = self.last.swap_remove(at);
            self.refill_last();
            return Some(removed);
        }
        let in_chunk = |chunk: &Chunk| chunk.iter().rposition(sought);
        let mut chunks = self.chunks.iter().enumerate().rev();
        let (chunk, at) = chunks.find_map(|(index, chunk)| Some((index, in_chunk(chunk)?)))?;
        let moved = self.last.pop()?;
        let removed = std::mem::replace(&mut Arc::make_mut(&mut self.chunks[chunk])[at], moved);
        self.refill_last();
        Some(removed)
    }

    fn refill_last(&mut self) {
        if self.last.is_empty() {
            self.last.extend(self.chunks.pop().iter().flat_map(|chunk| chunk.iter().cloned()));
        }
    }

    /// The positions at which the lists differ in their pods, with the pod of each list. Chunks
    /// that they share are not looked at.
    pub(crate) fn differences<'a>(
        &'a self,
        other: &'a PodList,
    ) -> impl Iterator<Item = (Option<&'a Arc<PodInfo>>, Option<&'a Arc<PodInfo>>)> {
        let parts = 0..=self.chunks.len().max(other.chunks.len());
        let both = parts.map(|index| (self.part(index), other.part(index)));
        let different = both.filter(|(own, theirs)| !std::ptr::eq(*own, *theirs));
        let pairs = different.flat_map(|(own, theirs)| {
            (0..own.len().max(theirs.len())).map(|at| (own.get(at), theirs.get(at)))
        });
        pairs.filter(|pair| !matches!(pair, (Some(own), Some(other)) if Arc::ptr_eq(own, other)))
    }

    fn part(&self, index: usize) -> &[Arc<PodInfo>] {
        match self.chunks.get(index) {
            Some(chunk) => chunk,
            None if index == self.chunks.len() => &self.last,
            None => &[],
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::testing::{info, pod};

    fn keys(pods: &PodList) -> Vec<Uid> {
        pods.iter().map(|pod| pod.uid()).collect()
    }

    fn differences(before: &PodList, after: &PodList) -> Vec<(Option<Uid>, Option<Uid>)> {
        let uid = |pod: Option<&Arc<PodInfo>>| pod.map(|pod| pod.uid());
        before.differences(after).map(|(old, new)| (uid(old), uid(new))).collect()
    }

    /// What the definition of a position yields, without chunks.
    fn plain_differences(before: &[Uid], after: &[Uid]) -> Vec<(Option<Uid>, Option<Uid>)> {
        let at = |at: usize| (before.get(at).copied(), after.get(at).copied());
        (0..before.len().max(after.len())).map(at).filter(|(old, new)| old != new).collect()
    }

    proptest! {
        /// Additions and removals yield the same as with a plain list, and leave copies alone.
        #[test]
        fn it_is_a_list(changes in prop::collection::vec((0usize..400, any::<bool>()), 1..400)) {
            let (mut pods, mut plain) = (PodList::default(), Vec::new());
            for number in 0..200 {
                let added = info(pod(&format!("p{number}")));
                plain.push(added.uid());
                pods.push(added);
            }
            for (number, (at, adds)) in changes.into_iter().enumerate() {
                let (copy, before) = (pods.clone(), plain.clone());
                if adds {
                    let added = info(pod(&format!("q{number}")));
                    plain.push(added.uid());
                    pods.push(added);
                } else if let Some(uid) = plain.get(at).copied() {
                    plain.swap_remove(at);
                    prop_assert_eq!(pods.swap_out(uid).map(|pod| pod.uid()), Some(uid));
                }
                prop_assert_eq!(keys(&pods), &plain[..]);
                prop_assert_eq!((pods.len(), pods.is_empty()), (plain.len(), plain.is_empty()));
                prop_assert_eq!(keys(&copy), &before[..]);
                prop_assert_eq!(differences(&copy, &pods), plain_differences(&before, &plain));
            }
            prop_assert!(pods.swap_out(pod("unknown").metadata.uid).is_none());
        }
    }

    #[test]
    fn the_last_pod_of_all_can_be_removed() {
        let mut pods = PodList::default();
        (0..=CHUNK).for_each(|number| pods.push(info(pod(&number.to_string()))));
        let all = keys(&pods);
        for (left, uid) in all.iter().enumerate().rev() {
            assert!(pods.swap_out(*uid).is_some());
            assert_eq!(keys(&pods), &all[..left]);
        }
        assert!(pods.is_empty());
        assert_eq!(pods, PodList::default());
    }
}
