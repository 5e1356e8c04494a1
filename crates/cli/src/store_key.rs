//! Keys of stores: from a file, or a passphrase.

use std::fs::File;
use std::io::{IsTerminal, Read, Write};
use std::path::Path;

use volvelle_lut::StoreKey;
use volvelle_prim::Prg;
use zeroize::Zeroizing;

use crate::args::store::StoreArgs;
use crate::error::CliError;

const PASSPHRASE: &str = "VOLVELLE_PASSPHRASE";
/// 64 digits, and room to see that there is more.
const MAX_FILE: u64 = 80;

/// The key of a store that is there.
///
/// # Errors
/// If there is no key, or it cannot be read or is malformed.
pub fn load(args: &StoreArgs) -> Result<StoreKey, CliError> {
    match &args.key_file {
        Some(path) => from_file(path),
        None => from_passphrase(false),
    }
}

/// The key of a store that may have to be made; if so, and the key file is not there either, it is made too.
///
/// # Errors
/// As [`load`], or if the key file cannot be made.
pub fn load_or_make(args: &StoreArgs, quiet: bool) -> Result<StoreKey, CliError> {
    let new = !args.store.exists();
    match &args.key_file {
        Some(path) if new && !path.exists() => {
            let key = make_file(path)?;
            if !quiet {
                eprintln!("made {}; without it the store is lost", path.display());
            }
            Ok(key)
        }
        Some(path) => from_file(path),
        None => from_passphrase(new),
    }
}

fn from_file(path: &Path) -> Result<StoreKey, CliError> {
    let fail = |reason: String| CliError::KeyFile {
        path: path.to_owned(),
        reason,
    };
    let file = File::open(path).map_err(|e| fail(e.to_string()))?;
    let mut text = Zeroizing::new(String::with_capacity(MAX_FILE as usize));
    let read = file.take(MAX_FILE).read_to_string(&mut text);
    read.map_err(|e| fail(e.to_string()))?;
    let key = from_hex(text.trim())
        .ok_or_else(|| fail("not a key; expected 64 hexadecimal digits".to_owned()))?;
    Ok(StoreKey::from_bytes(&key))
}

/// The file is there whole or not at all, and never over another: what an interruption leaves blocks nobody.
fn make_file(path: &Path) -> Result<StoreKey, CliError> {
    let mut key = Zeroizing::new([0; 32]);
    Prg::from_os().fill_bytes(&mut *key);
    let digits = key.iter().map(|byte| format!("{byte:02x}"));
    let digits: Zeroizing<String> = Zeroizing::new(digits.collect());
    let folder = path.parent().filter(|p| !p.as_os_str().is_empty());
    // Readable by its owner only.
    tempfile::NamedTempFile::new_in(folder.unwrap_or(Path::new(".")))
        .and_then(|mut file| {
            file.write_all(digits.as_bytes())?;
            file.write_all(b"\n")?;
            file.as_file().sync_all()?;
            Ok(file.persist_noclobber(path)?)
        })
        .map_err(|e| CliError::KeyFile {
            path: path.to_owned(),
            reason: e.to_string(),
        })?;
    Ok(StoreKey::from_bytes(&key))
}

fn from_hex(digits: &str) -> Option<Zeroizing<[u8; 32]>> {
    let mut key = Zeroizing::new([0; 32]);
    if digits.len() != 2 * key.len() || !digits.is_ascii() {
        return None;
    }
    for (i, byte) in key.iter_mut().enumerate() {
        *byte = u8::from_str_radix(digits.get(2 * i..2 * i + 2)?, 16).ok()?;
    }
    // `from_str_radix` takes a sign.
    (!digits.contains(['+', '-'])).then_some(key)
}

fn from_passphrase(new: bool) -> Result<StoreKey, CliError> {
    if let Ok(passphrase) = std::env::var(PASSPHRASE).map(Zeroizing::new) {
        return Ok(StoreKey::from_passphrase(&passphrase).map_err(volvelle_lut::LutError::from)?);
    }
    if !std::io::stdin().is_terminal() {
        return Err(CliError::NoKey);
    }
    let ask = |prompt| {
        let answer = rpassword::prompt_password(prompt);
        answer.map(Zeroizing::new).map_err(|_| CliError::NoKey)
    };
    let passphrase = ask("Passphrase of the store: ")?;
    if new && ask("Once more: ")? != passphrase {
        return Err(CliError::Mistyped);
    }
    Ok(StoreKey::from_passphrase(&passphrase).map_err(volvelle_lut::LutError::from)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_64_hexadecimal_digits() {
        let digits = "00ff".repeat(16);
        assert_eq!(from_hex(&digits).unwrap()[..4], [0, 255, 0, 255]);
        for wrong in [
            "",
            "00",
            &"0g".repeat(32),
            &"+f".repeat(32),
            &"00".repeat(33),
            &"é".repeat(32),
        ] {
            assert_eq!(from_hex(wrong), None, "{wrong}");
        }
    }
}
