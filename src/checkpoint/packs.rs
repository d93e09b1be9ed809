//! Where the bytes are: files without a name in the state directory.
//!
//! Each distinct content is kept once, found by a fingerprint of it. The files have no name from the moment they exist, so
//! nobody else can open them, two Neovims cannot meet in them, and the system frees them when the helper ends, however it
//! ends. A file is closed, and its space free, as soon as nothing in it is needed any more.

use std::collections::HashMap;
use std::collections::hash_map::RandomState;
use std::fs::{self, File};
use std::hash::BuildHasher;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};

use parking_lot::Mutex;

/// How much goes into one file before the next is begun, in bytes: small enough that old turns free their space.
const PACK: u64 = 8 * 1024 * 1024;

/// Some bytes that were kept.
#[derive(Debug, Clone)]
pub struct Blob {
    pack: Arc<Pack>,
    offset: u64,
    len: u64,
}

#[derive(Debug)]
struct Pack {
    file: Mutex<File>,
    len: Mutex<u64>,
}

/// Stands for some bytes. Both halves are seeded anew in every process: nobody can make two contents that look the same.
type Fingerprint = (u64, u64, u64);

/// All kept bytes of this helper.
#[derive(Debug)]
pub struct Packs {
    folder: PathBuf,
    limit: u64,
    seeds: (RandomState, RandomState),
    known: HashMap<Fingerprint, (Weak<Pack>, u64)>,
    open: Option<Arc<Pack>>,
    all: Vec<Weak<Pack>>,
}

/// Why bytes were not kept.
#[derive(Debug, thiserror::Error)]
pub enum PackError {
    /// There is no room left.
    #[error("the checkpoints have no room left")]
    Full,
    /// The disk said no.
    #[error("the checkpoint cannot be written: {0}")]
    Io(#[from] io::Error),
}

impl Packs {
    /// Keeps at most `limit` bytes below `folder`, which is made when it is needed.
    pub fn new(folder: PathBuf, limit: u64) -> Self {
        Self { folder, limit, seeds: Default::default(), known: HashMap::new(), open: None, all: Vec::new() }
    }

    /// Keeps these bytes; those that are kept already are not written again.
    ///
    /// # Errors
    /// See [`PackError`].
    pub fn keep(&mut self, bytes: &[u8]) -> Result<Blob, PackError> {
        let len = bytes.len() as u64;
        let fingerprint = (self.seeds.0.hash_one(bytes), self.seeds.1.hash_one(bytes), len);
        if let Some((pack, offset)) = self.known.get(&fingerprint)
            && let Some(pack) = pack.upgrade()
        {
            return Ok(Blob { pack, offset: *offset, len });
        }
        if self.used() + len > self.limit {
            return Err(PackError::Full);
        }
        let pack = self.pack_with_room()?;
        let offset = {
            let (mut file, mut end) = (pack.file.lock(), pack.len.lock());
            let offset = *end;
            file.seek(SeekFrom::Start(offset))?;
            file.write_all(bytes)?;
            *end += len;
            offset
        };
        self.known.insert(fingerprint, (Arc::downgrade(&pack), offset));
        Ok(Blob { pack, offset, len })
    }

    /// Bytes on disk.
    pub fn used(&mut self) -> u64 {
        self.all.retain(|pack| pack.strong_count() > 0);
        self.all.iter().filter_map(Weak::upgrade).map(|pack| *pack.len.lock()).sum()
    }

    /// Forgets where things are that nobody needs any more, and lets go of the file that is being filled if it is one.
    pub fn tidy(&mut self) {
        if self.open.as_ref().is_some_and(|pack| Arc::strong_count(pack) == 1) {
            self.open = None;
        }
        self.known.retain(|_, (pack, _)| pack.strong_count() > 0);
    }

    fn pack_with_room(&mut self) -> io::Result<Arc<Pack>> {
        if let Some(pack) = self.open.as_ref().filter(|pack| *pack.len.lock() < PACK) {
            return Ok(Arc::clone(pack));
        }
        make_private(&self.folder)?;
        let pack = Arc::new(Pack { file: Mutex::new(tempfile::tempfile_in(&self.folder)?), len: Mutex::new(0) });
        self.all.push(Arc::downgrade(&pack));
        self.open = Some(Arc::clone(&pack));
        Ok(pack)
    }
}

impl Blob {
    /// The bytes.
    ///
    /// # Errors
    /// When the disk does not give them back.
    pub fn read(&self) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; usize::try_from(self.len).map_err(io::Error::other)?];
        let mut file = self.pack.file.lock();
        file.seek(SeekFrom::Start(self.offset))?;
        file.read_exact(&mut bytes)?;
        Ok(bytes)
    }

    /// Whether there are no bytes.
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Whether both are the same bytes: equal contents are kept once.
    pub fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.pack, &other.pack) && self.offset == other.offset && self.len == other.len
    }
}

/// Makes a folder that only its owner can look into.
pub(super) fn make_private(folder: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::DirBuilderExt;
        builder.mode(0o700);
    }
    builder.create(folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contents_are_kept_once_and_leave_no_file_behind() -> Result<(), Box<dyn std::error::Error>> {
        let folder = tempfile::tempdir()?;
        let place = folder.path().join("a/checkpoints");
        let mut packs = Packs::new(place.clone(), 1000);
        let one = packs.keep(b"one")?;
        let two = packs.keep(b"two\r\n\0")?;
        let again = packs.keep(b"one")?;
        assert!(one.is(&again) && !one.is(&two));
        assert_eq!((one.read()?, two.read()?), (b"one".to_vec(), b"two\r\n\0".to_vec()));
        assert_eq!(packs.used(), 9);
        assert_eq!(fs::read_dir(&place)?.count(), 0, "the bytes are in a file without a name");
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            assert_eq!(fs::metadata(&place)?.permissions().mode() & 0o777, 0o700);
        }
        Ok(())
    }

    #[test]
    fn there_is_a_limit_and_room_again_once_nothing_is_needed() -> Result<(), Box<dyn std::error::Error>> {
        let folder = tempfile::tempdir()?;
        let mut packs = Packs::new(folder.path().to_owned(), 10);
        let kept = packs.keep(b"12345678")?;
        assert!(matches!(packs.keep(b"abc"), Err(PackError::Full)));
        assert!(packs.keep(b"12345678").is_ok(), "what is there needs no room");
        packs.tidy();
        assert_eq!(packs.used(), 8);
        drop(kept);
        packs.tidy();
        assert_eq!(packs.used(), 0);
        assert_eq!(packs.keep(b"abc")?.read()?, b"abc");
        Ok(())
    }
}
