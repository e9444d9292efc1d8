use std::{collections::BTreeMap, fs::File, io, os::unix::fs::FileExt as _, path::Path};

use parking_lot::{Mutex, MutexGuard};
use redb::StorageBackend;

/// A view of the file that writes nothing to it. What redb writes while it repairs the file stays in memory, so the file can be
/// read while the disk is full. Nobody may write the file meanwhile.
#[derive(Debug)]
pub(super) struct StoredView {
    file: File,
    changed: Mutex<Changed>,
}

/// What differs from the file.
#[derive(Debug)]
struct Changed {
    length: u64,
    /// The contents of changed blocks by number.
    blocks: BTreeMap<u64, Box<Block>>,
}

type Block = [u8; BLOCK_BYTES];

const BLOCK_BYTES: usize = 4_096;

impl StoredView {
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let file = File::open(path)?;
        let length = file.metadata()?.len();
        Ok(Self {
            file,
            changed: Mutex::new(Changed {
                length,
                blocks: BTreeMap::new(),
            }),
        })
    }

    fn changed(&self) -> MutexGuard<'_, Changed> {
        self.changed.lock()
    }

    /// Reads a block of the file. What lies behind its end is zero.
    fn block(&self, number: u64) -> io::Result<Box<Block>> {
        let mut block = Box::new([0; BLOCK_BYTES]);
        let start = number * BLOCK_BYTES as u64;
        let mut read = 0;
        // One read may return fewer bytes than were asked for.
        while read < BLOCK_BYTES {
            match self.file.read_at(&mut block[read..], start + read as u64) {
                Ok(0) => break,
                Ok(bytes) => read += bytes,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(block)
    }
}

/// Splits a range of bytes at the ends of blocks. Returns the block of each piece, its offset there, and its length.
fn pieces(offset: u64, bytes: usize) -> impl Iterator<Item = (u64, usize, usize)> {
    let mut done = 0;
    std::iter::from_fn(move || {
        let place = offset + done as u64;
        let within = usize::try_from(place % BLOCK_BYTES as u64).ok()?;
        let length = (BLOCK_BYTES - within).min(bytes - done);
        done += length;
        (length > 0).then_some((place / BLOCK_BYTES as u64, within, length))
    })
}

impl StorageBackend for StoredView {
    fn len(&self) -> io::Result<u64> {
        Ok(self.changed().length)
    }

    fn read(&self, offset: u64, mut out: &mut [u8]) -> io::Result<()> {
        let changed = self.changed();
        let end = offset.checked_add(out.len() as u64);
        if end.is_none_or(|end| end > changed.length) {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        for (number, within, length) in pieces(offset, out.len()) {
            let (piece, rest) = out.split_at_mut(length);
            // A block that was written has all bytes of the block, so only one of the two is read.
            match changed.blocks.get(&number) {
                Some(block) => piece.copy_from_slice(&block[within..][..length]),
                None => piece.copy_from_slice(&self.block(number)?[within..][..length]),
            }
            out = rest;
        }
        Ok(())
    }

    fn set_len(&self, length: u64) -> io::Result<()> {
        self.changed().length = length;
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        // Nothing is to survive the view.
        Ok(())
    }

    fn write(&self, offset: u64, mut data: &[u8]) -> io::Result<()> {
        let mut changed = self.changed();
        for (number, within, length) in pieces(offset, data.len()) {
            let (piece, rest) = data.split_at(length);
            // The first write to a block copies the rest of it from the file.
            let mut block = match changed.blocks.remove(&number) {
                Some(block) => block,
                None => self.block(number)?,
            };
            block[within..][..length].copy_from_slice(piece);
            changed.blocks.insert(number, block);
            data = rest;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_view_shows_what_was_written_to_it_and_leaves_the_file_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        let content: Vec<u8> = (0..10_000_u32)
            .map(|number| u8::try_from(number % 251).unwrap())
            .collect();
        fs::write(&path, &content).unwrap();
        let view = StoredView::open(&path).unwrap();
        view.set_len(20_000).unwrap();
        view.write(4_000, &[7; 5_000]).unwrap();
        view.write(19_999, &[9]).unwrap();
        let mut expected = content.clone();
        expected[4_000..9_000].fill(7);
        expected.resize(20_000, 0);
        expected[19_999] = 9;
        let mut read = vec![0; 20_000];
        view.read(0, &mut read).unwrap();
        assert_eq!(read, expected);
        assert!(view.read(19_999, &mut [0; 2]).is_err(), "behind its end");
        assert_eq!(fs::read(&path).unwrap(), content);
    }
}
