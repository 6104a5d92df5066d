//! The nodes with what is requested of them.

use maud::{Markup, html};

use crate::report::run::RunReport;
use crate::report::usage::NodeUsage;
use kubestep_api::intern::Symbol;
use kubestep_framework::resource::amount;

/// From this share on, in percent, a bar is a warning.
const FULL: i64 = 75;

/// A table with a bar for each resource.
pub(super) fn section(run: &RunReport) -> Markup {
    let resources = run.after.resources(&run.before);
    html! {
        section id="nodes" {
            h2 { "Nodes (" (run.after.nodes.len()) ")" }
            div.scroll { table {
                thead { tr { th { "node" } @for name in &resources { th { (name) } } } }
                @for node in &run.after.nodes {
                    tr.entry { td { (node.name) } @for name in &resources { (cell(node, *name)) } }
                }
            } }
        }
    }
}

/// Requested of allocatable, in words and as a bar.
fn cell(node: &NodeUsage, resource: Symbol) -> Markup {
    let (offered, requested) = node.amounts(resource);
    let percent = requested.saturating_mul(100) / offered.max(1);
    let show = |quantity| amount::of(&resource, quantity);
    let width = format!("width:{}%", percent.clamp(0, 100));
    html! {
        td.total {
            @if offered > 0 || requested > 0 {
                span.bar { span.full[percent >= FULL] style=(width) {} }
                @if offered > 0 { (percent) "% · " } (show(requested)) " of " (show(offered))
            }
        }
    }
}
