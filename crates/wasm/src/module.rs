//! A guest's module: what it exports, and what it is linked with.

use std::sync::Arc;

use kubestep_framework::config::{ExtensionPoint, ExtensionPoint::*, PointSet};
use wasmi::{Config, Engine, ExternType, FuncType, Linker, Module, ValType};
use wasmparser::{BinaryReader, BinaryReaderError, GlobalSectionReader};

use crate::GuestError;
use crate::abi::{self, HostState};
use crate::proto::varint;

/// What a function that a guest may export returns, and the points at which the plugin runs then.
/// kube-scheduler couples some: a guest that exports `filter` also runs at PostFilter.
struct Export {
    name: &'static str,
    result: Option<ValType>,
    points: &'static [ExtensionPoint],
}

const fn export(
    name: &'static str,
    result: Option<ValType>,
    points: &'static [ExtensionPoint],
) -> Export {
    Export { name, result, points }
}

const I32: Option<ValType> = Some(ValType::I32);
const I64: Option<ValType> = Some(ValType::I64);

const EXPORTS: [Export; 16] = [
    export("enqueue", None, &[]),
    export("prefilter", I32, &[]),
    export("addpod", I32, &[]),
    export("removepod", I32, &[]),
    export("filter", I32, &[Filter, PostFilter]),
    export("postfilter", I64, &[]),
    export("prescore", I32, &[]),
    export("score", I64, &[PreScore, Score]),
    export("normalizescore", I32, &[]),
    export("reserve", I32, &[Reserve]),
    export("unreserve", None, &[Reserve]),
    export("permit", I64, &[Permit]),
    export("prebind", I32, &[]),
    export("bind", I32, &[PreBind, Bind, PostBind]),
    export("postbind", None, &[]),
    // Not of the extension: the start function of a program, which runs before all others.
    export("_start", None, &[]),
];

/// The prefix under which the module's variables are exported, so that a copy of a running guest
/// can be made. No name in a module can begin like this by chance.
pub(crate) const VARIABLE: &str = "kubestep.variable.";

/// A guest's module, ready to run. Cloning it is cheap.
#[derive(Clone)]
pub struct GuestModule(Arc<Linked>);

struct Linked {
    module: Module,
    linker: Linker<HostState>,
    exports: Vec<&'static str>,
}

impl GuestModule {
    /// Compiles a guest, in binary form, and checks what it exports.
    ///
    /// # Errors
    /// The bytes are no module, or it is not a guest.
    pub fn new(wasm: &[u8]) -> Result<GuestModule, GuestError> {
        let mut config = Config::default();
        config.consume_fuel(true);
        let engine = Engine::new(&config);
        let invalid = |error: &dyn std::fmt::Display| GuestError::Invalid(error.to_string());
        // Before it is rewritten, so that errors are about the file.
        Module::validate(&engine, wasm).map_err(|error| invalid(&error))?;
        let wasm = with_variables_exported(wasm).map_err(|error| invalid(&error))?;
        let module = Module::new(&engine, wasm).map_err(|error| invalid(&error))?;
        if !matches!(module.get_export("memory"), Some(ExternType::Memory(_))) {
            return Err(GuestError::NoMemory);
        }
        let exports = exports(&module)?;
        let linker = abi::linker(&engine, &module).map_err(|error| invalid(&error))?;
        Ok(GuestModule(Arc::new(Linked { module, linker, exports })))
    }

    /// The points at which the plugin runs.
    pub fn points(&self) -> PointSet {
        // Always, as upstream: a cycle begins with a fresh guest there.
        points(&self.0.exports).with(PointSet::of(&[PreFilter]))
    }

    /// Whether the guest exports a function.
    pub(crate) fn exports(&self, name: &str) -> bool {
        self.0.exports.contains(&name)
    }

    pub(crate) fn module(&self) -> &Module {
        &self.0.module
    }

    pub(crate) fn linker(&self) -> &Linker<HostState> {
        &self.0.linker
    }
}

fn points(exports: &[&str]) -> PointSet {
    let exported = EXPORTS.iter().filter(|export| exports.contains(&export.name));
    exported.fold(PointSet::default(), |set, export| set.with(PointSet::of(export.points)))
}

/// The functions that it exports for the scheduler, checked.
fn exports(module: &Module) -> Result<Vec<&'static str>, GuestError> {
    let mut found = Vec::new();
    for Export { name, result, .. } in &EXPORTS {
        let Some(ExternType::Func(signature)) = module.get_export(name) else { continue };
        if signature != FuncType::new([], *result) {
            let result =
                result.map_or("nothing", |kind| if kind == ValType::I32 { "i32" } else { "i64" });
            return Err(GuestError::Signature { export: name, result });
        }
        found.push(*name);
    }
    let alone = ["prefilter", "_start"];
    let only_pre_filter =
        found.contains(&alone[0]) && found.iter().all(|name| alone.contains(name));
    if points(&found) == PointSet::default() && !only_pre_filter {
        return Err(GuestError::NoPlugin);
    }
    Ok(found)
}

/// The same module with all variables exported.
fn with_variables_exported(wasm: &[u8]) -> Result<Vec<u8>, BinaryReaderError> {
    const GLOBALS: u8 = 6;
    const EXPORTS: u8 = 7;
    let mut reader = BinaryReader::new(wasm, 0);
    let mut out = reader.read_bytes(8)?.to_vec(); // magic number and version
    let mut variables = Vec::new();
    while !reader.eof() {
        let id = reader.read_u8()?;
        let size = reader.read_var_u32()? as usize;
        let mut content = reader.read_bytes(size)?.to_vec();
        match id {
            GLOBALS => {
                let globals = GlobalSectionReader::new(BinaryReader::new(&content, 0))?;
                for (index, global) in (0_u32..).zip(globals) {
                    variables.extend(global?.ty.mutable.then_some(index));
                }
            }
            EXPORTS => content = more_exports(&content, &variables)?,
            _ => {}
        }
        out.push(id);
        varint(&mut out, content.len() as u64);
        out.append(&mut content);
    }
    Ok(out)
}

/// The section of exports with one for each of the variables.
fn more_exports(section: &[u8], variables: &[u32]) -> Result<Vec<u8>, BinaryReaderError> {
    const GLOBAL: u8 = 3;
    let mut reader = BinaryReader::new(section, 0);
    let count = u64::from(reader.read_var_u32()?);
    let mut out = Vec::new();
    varint(&mut out, count + variables.len() as u64);
    out.extend_from_slice(reader.read_bytes(reader.bytes_remaining())?);
    for index in variables {
        let name = format!("{VARIABLE}{index}");
        varint(&mut out, name.len() as u64);
        out.extend_from_slice(name.as_bytes());
        out.push(GLOBAL);
        varint(&mut out, (*index).into());
    }
    Ok(out)
}
