//! Decoding of plugin arguments, strict like the document itself. An empty map
//! decodes to the defaults, so this is where they are applied, too.
//!
//! Upstream: `pkg/scheduler/apis/config/scheme`, `pkg/scheduler/apis/config/v1/defaults.go`.

use kubestep_api::intern::Symbol;

use super::args::PluginArgs;
use super::decode::{Context, type_field};
use super::path::FieldPath;
use super::points::{PluginDescriptor, find_plugin};
use super::problem::Problem;
use super::reader::Reader;
use super::types::{API_VERSION, GROUP, KIND};
use super::yaml_value::YamlValue;

/// Whether `kind` is the argument kind of a known plugin.
pub(crate) fn has_args_kind(kind: &str, plugins: &[PluginDescriptor]) -> bool {
    plugins.iter().filter_map(|plugin| plugin.args).any(|args| args.kind == kind)
}

/// Decodes the arguments of `plugin`. Those of a plugin that is unknown, or that declares none,
/// are kept as written.
pub fn args(
    reader: &mut Reader,
    plugin: Symbol,
    node: &YamlValue,
    path: &FieldPath,
    context: &Context<'_>,
) -> Option<PluginArgs> {
    let Some(args) = find_plugin(context.plugins, &plugin).and_then(|plugin| plugin.args) else {
        let raw = serde_json::to_value(node).ok().filter(|raw| !raw.is_null());
        return raw.map(PluginArgs::raw);
    };
    if let Err(problem) = check_kind(args.kind, plugin, node, path, context) {
        reader.problems.push(problem);
        return None;
    }
    let mut fields = reader.fields(node, path);
    fields.raw("apiVersion");
    fields.raw("kind");
    let args = args.read(&mut fields, context.gates);
    fields.finish();
    Some(args)
}

/// Arguments may leave out what they are, but not claim to be something else.
fn check_kind(
    wanted: &str,
    plugin: Symbol,
    node: &YamlValue,
    path: &FieldPath,
    context: &Context<'_>,
) -> Result<(), Problem> {
    let version = type_field(node, "apiVersion", path)?;
    if !version.is_empty() && !context.reads(version) {
        let message = format!("{version:?} is not served");
        let help = format!("use {API_VERSION} or omit apiVersion");
        return Err(Problem::new(&path.field("apiVersion"), message).help(help));
    }
    let kind = type_field(node, "kind", path)?;
    if kind.is_empty() || kind == wanted {
        return Ok(());
    }
    let message = match kind == KIND || has_args_kind(kind, context.plugins) {
        true => format!(
            "args for plugin {plugin} were not of type {wanted}.{GROUP}, got {kind}.{GROUP}"
        ),
        false => format!("there is no kind {kind:?} in {API_VERSION}"),
    };
    Err(Problem::new(&path.field("kind"), message).help(format!("write {wanted}")))
}
