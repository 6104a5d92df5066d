//! A catalogue of instance types with their prices, as karpenter's kwok provider reads it.
//!
//! Upstream: `kwok/cloudprovider/helpers.go` of kubernetes-sigs/karpenter. Like there, every
//! offering counts as available.

use super::{Contents, ForeignFormat, as_is};
use crate::error::SourceError;
use crate::files::FileText;
use kubestep_api::{InstanceType, Provisioning};

pub(super) const FORMAT: ForeignFormat = ForeignFormat {
    name: "a catalogue of instance types",
    may_be: |text| text.trim_start().starts_with('[') && text.contains("\"offerings\""),
    prepare: as_is,
    read,
    holds: &[],
    is_scheduler: false,
};

fn read(file: &FileText) -> Result<Option<Contents<'_>>, Box<SourceError>> {
    let Ok(instance_types) = serde_json::from_str::<Vec<InstanceType>>(&file.text) else {
        return Ok(None);
    };
    let provisioning = Provisioning { instance_types, ..Provisioning::default() };
    Ok(Some(Contents { provisioning, ..Contents::default() }))
}
