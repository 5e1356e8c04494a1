//! Timings are kept as JSON in the user's cache directory: `volvelle/machine.json`.

use std::path::PathBuf;
use std::{env, fs};

use etcetera::BaseStrategy;

use super::Machine;

const FILE: &str = "machine.json";

/// What timings hold for; other ones are made anew.
pub(super) fn stamp() -> String {
    let build = if cfg!(debug_assertions) {
        "debug"
    } else {
        "release"
    };
    let simd = env::var("VOLVELLE_SIMD").unwrap_or_else(|_| "widest".to_owned());
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    format!(
        "{} {build}, {}, {cores} cores, {simd} instructions",
        env!("CARGO_PKG_VERSION"),
        processor()
    )
}

/// The processor's name where the system tells it.
fn processor() -> String {
    let text = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    // The name alone may stand for several generations.
    let field = |name: &str| {
        text.lines()
            .find(|line| line.starts_with(name))
            .and_then(|line| line.split_once(':'))
            .map(|(_, value)| value.trim().to_owned())
    };
    match field("model name") {
        Some(name) => format!(
            "{name} family {} model {}",
            field("cpu family").unwrap_or_default(),
            field("model\t").unwrap_or_default()
        ),
        None => env::consts::ARCH.to_owned(),
    }
}

fn folder() -> Option<PathBuf> {
    if let Some(folder) = env::var_os("VOLVELLE_CACHE") {
        return Some(folder.into());
    }
    let strategy = etcetera::choose_base_strategy().ok()?;
    Some(strategy.cache_dir().join("volvelle"))
}

/// What is kept, if it can be read.
pub(super) fn load() -> Option<Machine> {
    let text = fs::read_to_string(folder()?.join(FILE)).ok()?;
    serde_json::from_str(&text).ok()
}

/// Keeps timings; if that fails they are made again another time. Written aside and moved, so that another process never
/// reads half of it.
pub(super) fn keep(machine: &Machine) {
    let write = || -> Option<()> {
        let folder = folder()?;
        fs::create_dir_all(&folder).ok()?;
        let aside = folder.join(format!("{FILE}.{}", std::process::id()));
        let text = serde_json::to_string_pretty(machine).ok()?;
        fs::write(&aside, text).ok()?;
        let moved = fs::rename(&aside, folder.join(FILE));
        if moved.is_err() {
            let _ = fs::remove_file(&aside);
        }
        moved.ok()
    };
    let _ = write();
}
