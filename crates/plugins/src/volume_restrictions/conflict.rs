//! Conflicts between the inline disks of two pods.

use kubestep_api::{Pod, Volume};

/// Whether the volume is of a kind that can conflict.
pub(crate) fn is_restricted(volume: &Volume) -> bool {
    volume.gce_persistent_disk.is_some()
        || volume.aws_elastic_block_store.is_some()
        || volume.rbd.is_some()
        || volume.iscsi.is_some()
}

/// Whether both pods use a disk that only one of them may use.
pub(crate) fn pods_conflict(pod: &Pod, other: &Pod) -> bool {
    let volumes = &other.spec.volumes;
    let restricted = pod.spec.volumes.iter().filter(|volume| is_restricted(volume));
    restricted.into_iter().any(|volume| volumes.iter().any(|other| conflict(volume, other)))
}

fn conflict(volume: &Volume, other: &Volume) -> bool {
    gce(volume, other) || ebs(volume, other) || iscsi(volume, other) || rbd(volume, other)
}

fn gce(volume: &Volume, other: &Volume) -> bool {
    let pair = volume.gce_persistent_disk.as_ref().zip(other.gce_persistent_disk.as_ref());
    pair.is_some_and(|(a, b)| a.pd_name == b.pd_name && !(a.read_only && b.read_only))
}

/// EBS volumes conflict even if both are read-only.
fn ebs(volume: &Volume, other: &Volume) -> bool {
    let pair = volume.aws_elastic_block_store.as_ref().zip(other.aws_elastic_block_store.as_ref());
    pair.is_some_and(|(a, b)| a.volume_id == b.volume_id)
}

/// The target portal and the LUN are not compared.
fn iscsi(volume: &Volume, other: &Volume) -> bool {
    let pair = volume.iscsi.as_ref().zip(other.iscsi.as_ref());
    pair.is_some_and(|(a, b)| a.iqn == b.iqn && !(a.read_only && b.read_only))
}

fn rbd(volume: &Volume, other: &Volume) -> bool {
    let pair = volume.rbd.as_ref().zip(other.rbd.as_ref());
    pair.is_some_and(|(a, b)| {
        a.monitors.iter().any(|monitor| b.monitors.contains(monitor))
            && a.pool == b.pool
            && a.image == b.image
            && !(a.read_only && b.read_only)
    })
}
