//! The file beneath a store, behind a trait so that tests can take the power away at any moment.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use super::error::StoreError;

/// Bytes that stay. What is written counts as there only after the next `sync`; until then any part of it may be.
pub(super) trait Disk: Send {
    fn len(&mut self) -> io::Result<u64>;
    fn read(&mut self, offset: u64, out: &mut [u8]) -> io::Result<()>;
    fn write(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()>;
    fn sync(&mut self) -> io::Result<()>;
    /// Drops what is beyond `len`.
    fn cut(&mut self, len: u64) -> io::Result<()>;
    /// Gives back the space of bytes that nobody will read, where the system can.
    fn discard(&mut self, from: u64, to: u64);
}

impl Disk for File {
    fn len(&mut self) -> io::Result<u64> {
        Ok(self.metadata()?.len())
    }

    fn read(&mut self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.seek(SeekFrom::Start(offset))?;
        self.read_exact(out)
    }

    fn write(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.seek(SeekFrom::Start(offset))?;
        self.write_all(bytes)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.sync_data()
    }

    fn cut(&mut self, len: u64) -> io::Result<()> {
        self.set_len(len)
    }

    #[cfg(target_os = "linux")]
    fn discard(&mut self, from: u64, to: u64) {
        use rustix::fs::{FallocateFlags, fallocate};
        // A file system without holes keeps them; once the record's copy is synced too, nothing in the file has their keys.
        let hole = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        let _ = fallocate(&*self, hole, from, to - from);
    }

    #[cfg(not(target_os = "linux"))]
    fn discard(&mut self, _from: u64, _to: u64) {}
}

/// The error for a system's refusal.
pub(super) fn failed(path: &Path, doing: &'static str, source: io::Error) -> StoreError {
    let path = path.to_owned();
    match source.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge => {
            StoreError::DiskFull { path }
        }
        _ => StoreError::Io {
            path,
            doing,
            source,
        },
    }
}

/// Opens a store's file, for this process alone.
pub(super) fn open(path: &Path) -> Result<File, StoreError> {
    let file = OpenOptions::new().read(true).write(true).open(path);
    let file = file.map_err(|e| failed(path, "open", e))?;
    let regular = file.metadata().is_ok_and(|m| m.is_file());
    if !regular {
        return Err(StoreError::NotAStore {
            path: path.to_owned(),
        });
    }
    lock(&file, path)?;
    Ok(file)
}

fn lock(file: &File, path: &Path) -> Result<(), StoreError> {
    file.try_lock().map_err(|refused| match refused {
        TryLockError::WouldBlock => StoreError::Locked {
            path: path.to_owned(),
        },
        TryLockError::Error(e) => failed(path, "lock", e),
    })
}

/// Makes a file with these first bytes, whole or not at all: they are written under another name, which is then
/// changed. `replace` says whether a file of that name may be there.
pub(super) fn create(path: &Path, first: &[u8], replace: bool) -> Result<File, StoreError> {
    let partial = partial_name(path);
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options
        .open(&partial)
        .map_err(|e| failed(&partial, "create", e))?;
    // From here on no other process makes this store; what it may just have made is seen below.
    lock(&file, &partial)?;
    if !replace && path.exists() {
        return Err(StoreError::Exists {
            path: path.to_owned(),
        });
    }
    let written = file
        .set_len(0)
        .and_then(|()| Disk::write(&mut file, 0, first))
        .and_then(|()| file.sync_all())
        .and_then(|()| std::fs::rename(&partial, path))
        .and_then(|()| sync_folder(path));
    written.map_err(|e| failed(path, "create", e))?;
    Ok(file)
}

fn partial_name(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".new");
    name.into()
}

/// Makes a change of name last.
fn sync_folder(path: &Path) -> io::Result<()> {
    if cfg!(unix) {
        let folder = path.parent().filter(|p| !p.as_os_str().is_empty());
        File::open(folder.unwrap_or(Path::new(".")))?.sync_all()?;
    }
    Ok(())
}
