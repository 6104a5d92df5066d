//! What programs for WASI import: enough to start and to print why they stop.
//!
//! A guest gets no clock, no randomness, no files and no network. The time does not advance, and random
//! bytes are always the same, as they are for guests of kube-scheduler-wasm-extension.

use wasmi::errors::LinkerError;
use wasmi::{Error, ExternType, Linker, Module, Val};

use crate::abi::{Guest, HostState, read, write};

const WASI: &str = "wasi_snapshot_preview1";

/// WASI's number for success.
const SUCCESS: i32 = 0;
/// WASI's number for a function that does not exist.
const NOSYS: i32 = 52;
/// 2022-01-01 in nanoseconds, where the clock of the extension begins.
const STANDSTILL: u64 = 1_640_995_200_000_000_000;
/// How much is kept of what a guest prints, in bytes.
const OUTPUT: usize = 1024;

/// Links the functions, and one that fails for each other function of WASI that the module imports.
pub(crate) fn link(linker: &mut Linker<HostState>, module: &Module) -> Result<(), LinkerError> {
    for name in ["args_sizes_get", "environ_sizes_get"] {
        linker.func_wrap(WASI, name, |mut guest: Guest<'_>, count: u32, size: u32| {
            write(&mut guest, count, &[0; 4])?;
            write(&mut guest, size, &[0; 4])?;
            Ok::<i32, Error>(SUCCESS)
        })?;
    }
    for name in ["args_get", "environ_get"] {
        linker.func_wrap(WASI, name, |_: Guest<'_>, _: u32, _: u32| SUCCESS)?;
    }
    linker.func_wrap(WASI, "clock_time_get", |mut guest: Guest<'_>, _: u32, _: u64, to: u32| {
        write(&mut guest, to, &STANDSTILL.to_le_bytes()).map(|()| SUCCESS)
    })?;
    linker.func_wrap(WASI, "random_get", |mut guest: Guest<'_>, to: u32, length: u32| {
        let _inside = read(&guest, to, length)?; // before so many bytes are made
        let bytes: Vec<u8> = (0..length).map(|at| (at % 251) as u8).collect();
        write(&mut guest, to, &bytes).map(|()| SUCCESS)
    })?;
    linker.func_wrap(WASI, "proc_exit", |_: Guest<'_>, code: i32| {
        Err::<(), Error>(Error::i32_exit(code))
    })?;
    linker.func_wrap(WASI, "fd_write", fd_write)?;
    refuse_the_rest(linker, module)
}

fn refuse_the_rest(linker: &mut Linker<HostState>, module: &Module) -> Result<(), LinkerError> {
    for import in module.imports().filter(|import| import.module() == WASI) {
        if let ExternType::Func(signature) = import.ty() {
            let reject = |_: Guest<'_>, _: &[Val], results: &mut [Val]| {
                results.iter_mut().for_each(|result| *result = Val::I32(NOSYS));
                Ok(())
            };
            // An error means that it is one of those above.
            let _linked = linker.func_new(WASI, import.name(), signature.clone(), reject);
        }
    }
    Ok(())
}

/// Keeps what is printed. `pieces` is a list of addresses and lengths.
fn fd_write(
    mut guest: Guest<'_>,
    _file: u32,
    pieces: u32,
    count: u32,
    written: u32,
) -> Result<i32, Error> {
    let pieces = read(&guest, pieces, count.saturating_mul(8))?;
    let mut total = 0_u32;
    for piece in pieces.chunks_exact(8) {
        let number = |at: usize| u32::from_le_bytes([0, 1, 2, 3].map(|byte| piece[at + byte]));
        let (from, length) = (number(0), number(4));
        let bytes = read(&guest, from, length)?;
        total = total.saturating_add(length);
        let output = &mut guest.data_mut().output;
        let room = OUTPUT.saturating_sub(output.len()).min(bytes.len());
        output.push_str(&String::from_utf8_lossy(&bytes[..room]));
    }
    write(&mut guest, written, &total.to_le_bytes()).map(|()| SUCCESS)
}
