//! A guest that runs: an instance of its module with its memory.
//!
//! As upstream, a guest serves one pod at a time and keeps its memory from PreFilter to PostBind,
//! and all copies of a cycle state share it at Filter and Score. It is copied where the engine
//! copies a state to change it, so that no branch of a session sees what another one did.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kubestep_framework::status::Status;
use wasmi::{
    Extern, Instance, Memory, Mutability, Store, StoreLimitsBuilder, TrapCode, Val, ValType,
};

use crate::abi::{Call, HostState};
use crate::module::{GuestModule, VARIABLE};

/// How much a guest may do in one call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct GuestLimits {
    /// Instructions in one call. It is a limit of time, too: the engine has no clock.
    pub instructions: u64,
    /// The most bytes of linear memory.
    pub memory: usize,
}

impl Default for GuestLimits {
    fn default() -> GuestLimits {
        GuestLimits { instructions: 2_000_000_000, memory: 256 << 20 }
    }
}

/// What instances of one plugin have in common.
#[derive(Clone)]
pub(crate) struct Program {
    pub module: GuestModule,
    pub config: Arc<str>,
    pub severity: i32,
    pub limits: GuestLimits,
}

/// The memory and the variables of a guest between two calls.
#[derive(Default)]
pub(crate) struct Image {
    memory: Vec<u8>,
    variables: Vec<(String, Val)>,
}

struct Running {
    store: Store<HostState>,
    instance: Instance,
    memory: Memory,
}

impl Program {
    /// The state of a guest that was just started: what every cycle begins with.
    pub(crate) fn start(&self) -> Result<Image, String> {
        let mut guest = Running::new(self).map_err(|error| sentence(&error, self.limits))?;
        if self.module.exports("_start") {
            guest.call(self, "_start", Call::default())?;
        }
        Ok(guest.image())
    }
}

impl Running {
    fn new(program: &Program) -> Result<Running, wasmi::Error> {
        let limits = StoreLimitsBuilder::new().memory_size(program.limits.memory);
        let state = HostState {
            limits: limits.trap_on_grow_failure(true).build(),
            config: program.config.clone(),
            severity: program.severity,
            ..HostState::default()
        };
        let module = program.module.module();
        let mut store = Store::new(module.engine(), state);
        store.limiter(|state| &mut state.limits);
        store.set_fuel(program.limits.instructions)?;
        let instance = program.module.linker().instantiate_and_start(&mut store, module)?;
        let memory = instance.get_memory(&store, "memory");
        let memory = memory.ok_or_else(|| wasmi::Error::new("its memory is not exported"))?;
        Ok(Running { store, instance, memory })
    }

    /// A new instance with the state of another one.
    fn from_image(program: &Program, image: &Image) -> Result<Running, wasmi::Error> {
        let mut guest = Running::new(program)?;
        let has = guest.memory.data(&guest.store).len();
        let more = image.memory.len().saturating_sub(has) as u64 / (64 << 10);
        guest
            .memory
            .grow(&mut guest.store, more)
            .map_err(|error| wasmi::Error::new(error.to_string()))?;
        let memory = guest.memory.data_mut(&mut guest.store);
        memory.iter_mut().zip(&image.memory).for_each(|(byte, saved)| *byte = *saved);
        for (name, value) in &image.variables {
            if let Some(variable) = guest.instance.get_global(&guest.store, name) {
                let set = variable.set(&mut guest.store, value.clone());
                set.map_err(|error| wasmi::Error::new(error.to_string()))?;
            }
        }
        Ok(guest)
    }

    fn image(&self) -> Image {
        let variable = |export: wasmi::Export<'_>| {
            let name = export.name().strip_prefix(VARIABLE).map(|_| export.name().to_owned())?;
            let Extern::Global(global) = export.into_extern() else { return None };
            let kind = global.ty(&self.store);
            let is_number = !matches!(kind.content(), ValType::FuncRef | ValType::ExternRef);
            let is_kept = is_number && kind.mutability() == Mutability::Var;
            is_kept.then(|| (name, global.get(&self.store)))
        };
        Image {
            memory: self.memory.data(&self.store).to_vec(),
            variables: self.instance.exports(&self.store).filter_map(variable).collect(),
        }
    }

    /// Calls a function that the guest exports. Returns its number, 0 if it has none, and what it
    /// handed over.
    fn call(&mut self, program: &Program, export: &str, call: Call) -> Result<(u64, Call), String> {
        let state = self.store.data_mut();
        (state.call, state.output) = (call, String::new());
        let done = self.run(program, export);
        let state = self.store.data_mut();
        // The snapshot must not be held longer: the cache would copy it before it changes it.
        let call = std::mem::take(&mut state.call);
        match done {
            Ok(number) => Ok((number, call)),
            Err(error) if error.i32_exit_status() == Some(0) => Ok((0, call)),
            Err(error) => {
                let (sentence, output) = (sentence(&error, program.limits), state.output.trim());
                Err(match output.is_empty() {
                    true => sentence,
                    false => format!("{sentence}; it printed {output:?}"),
                })
            }
        }
    }

    fn run(&mut self, program: &Program, export: &str) -> Result<u64, wasmi::Error> {
        self.store.set_fuel(program.limits.instructions)?;
        let function = self.instance.get_func(&self.store, export);
        let function =
            function.ok_or_else(|| wasmi::Error::new(format!("it exports no {export}")))?;
        let mut results = vec![Val::I32(0); function.ty(&self.store).results().len()];
        function.call(&mut self.store, &[], &mut results)?;
        Ok(match results.first() {
            Some(Val::I32(number)) => u64::from(number.cast_unsigned()),
            Some(Val::I64(number)) => number.cast_unsigned(),
            _ => 0,
        })
    }
}

/// Why a call ended, for people.
fn sentence(error: &wasmi::Error, limits: GuestLimits) -> String {
    if let Some(status) = error.i32_exit_status() {
        return format!("the guest exited with status {status}");
    }
    let Some(trap) = error.as_trap_code() else { return format!("the guest failed: {error}") };
    match trap {
        TrapCode::UnreachableCodeReached => "the guest gave up, as on a panic".to_owned(),
        TrapCode::OutOfFuel => format!(
            "the guest did not end within {} million instructions, the limit for one call",
            limits.instructions / 1_000_000
        ),
        TrapCode::GrowthOperationLimited => {
            format!("the guest wants more than {} MiB of memory, the limit", limits.memory >> 20)
        }
        TrapCode::StackOverflow => "the guest's calls are nested too deeply".to_owned(),
        _ => format!("the guest failed: {trap}"),
    }
}

/// The guest of one pod, from PreFilter on.
pub(crate) struct PodGuest(Mutex<GuestState>);

struct GuestState {
    /// What it begins with.
    saved: Arc<Image>,
    /// `None` until it is called.
    running: Option<Box<Running>>,
}

impl Clone for PodGuest {
    fn clone(&self) -> PodGuest {
        let stage = self.lock();
        PodGuest::new(match &stage.running {
            Some(guest) => Arc::new(guest.image()),
            None => stage.saved.clone(),
        })
    }
}

impl PodGuest {
    pub(crate) fn new(saved: Arc<Image>) -> PodGuest {
        PodGuest(Mutex::new(GuestState { saved, running: None }))
    }

    fn lock(&self) -> MutexGuard<'_, GuestState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Calls a function that the guest exports.
    ///
    /// # Errors
    /// The error status for a guest that failed.
    pub(crate) fn call(
        &self,
        program: &Program,
        export: &str,
        call: Call,
    ) -> Result<(u64, Call), Status> {
        let failed = |sentence| Status::error(format!("wasm: {export} error: {sentence}"));
        let GuestState { saved, running } = &mut *self.lock();
        let guest = match running {
            Some(guest) => guest,
            None => {
                let guest = Running::from_image(program, saved);
                let guest = guest.map_err(|error| failed(sentence(&error, program.limits)))?;
                running.insert(Box::new(guest))
            }
        };
        guest.call(program, export, call).map_err(failed)
    }
}
