//! `volvelle keygen`: a key, and the certificate that goes with it.

use std::path::Path;

use volvelle_net::NewIdentity;

use crate::args::KeygenArgs;
use crate::error::CliError;
use crate::report::print;
use crate::session::{certificate_path, key_path};

/// Longest name of a party; it is a file name with a suffix to come.
const MAX_NAME: usize = 64;

/// Runs the command.
///
/// # Errors
/// If the name is no file name, or a file exists or cannot be written.
pub fn run(args: &KeygenArgs) -> Result<(), CliError> {
    generate(&args.out, &args.name, args.days)?;
    let identity = args.out.join(&args.name);
    print(&format!(
        "{}: send this to the other party, for its --peer-cert\n{}: keep this to yourself; use --identity {}",
        certificate_path(&identity).display(),
        key_path(&identity).display(),
        identity.display(),
    ))
}

/// Writes `NAME.key.pem` and `NAME.cert.pem` into a folder, which is made if need be.
///
/// # Errors
/// As [`run`].
pub fn generate(folder: &Path, name: &str, days: u32) -> Result<(), CliError> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    if name.is_empty() || name.len() > MAX_NAME || name.starts_with('.') || !name.chars().all(plain)
    {
        return Err(CliError::Name(name.chars().take(MAX_NAME).collect()));
    }
    std::fs::create_dir_all(folder).map_err(|source| CliError::Folder {
        path: folder.to_owned(),
        source,
    })?;
    let identity = folder.join(name);
    NewIdentity::generate(name, days)?.save(&certificate_path(&identity), &key_path(&identity))?;
    Ok(())
}
