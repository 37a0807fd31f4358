//! Compression of segments and blobs.

use std::borrow::Cow;

use zstd::bulk::{Compressor, Decompressor};
use zstd::zstd_safe::CParameter;

use crate::error::Error;

/// Recorded sessions in blocks of 256 KiB: level 1 packs 8.8 to 1 at 645 MB/s, level 3 packs
/// 9.4 to 1 at 385 MB/s.
const LEVEL: i32 = 1;

/// Buffers larger than this are given back after use.
const KEEP: usize = 512 << 10;

const PLAIN: i64 = 0;
const ZSTD: i64 = 1;

/// Compresses on the writer's thread. The context is made at first use: a process that only reads
/// does without its megabyte.
#[derive(Default)]
pub(crate) struct Packer {
    compressor: Option<Compressor<'static>>,
    packed: Vec<u8>,
    joined: Vec<u8>,
}

/// Bytes as they go into a row.
pub(crate) struct Packed<'a> {
    pub(crate) codec: i64,
    pub(crate) data: &'a [u8],
}

impl Packer {
    /// Compresses, or leaves as it is what would not get smaller.
    pub(crate) fn pack<'a>(&'a mut self, raw: &'a [u8]) -> Result<Packed<'a>, Error> {
        pack(&mut self.compressor, &mut self.packed, raw)
    }

    /// Joins pieces in the order given and compresses them.
    pub(crate) fn pack_joined<'a>(
        &'a mut self,
        fill: impl FnOnce(&mut Vec<u8>) -> Result<(), Error>,
    ) -> Result<(Packed<'a>, usize), Error> {
        self.joined.clear();
        fill(&mut self.joined)?;
        let packed = pack(&mut self.compressor, &mut self.packed, &self.joined)?;
        Ok((packed, self.joined.len()))
    }

    /// Joins pieces in the order given and leaves them plain.
    pub(crate) fn join<'a>(&'a mut self, pieces: impl Iterator<Item = &'a [u8]>) -> Packed<'a> {
        self.joined.clear();
        pieces.for_each(|piece| self.joined.extend_from_slice(piece));
        Packed { codec: PLAIN, data: &self.joined }
    }

    /// Gives back what one large segment took.
    pub(crate) fn shrink(&mut self) {
        self.packed.clear();
        self.packed.shrink_to(KEEP);
        self.joined.clear();
        self.joined.shrink_to(KEEP);
    }
}

fn pack<'a>(
    compressor: &mut Option<Compressor<'static>>,
    packed: &'a mut Vec<u8>,
    raw: &'a [u8],
) -> Result<Packed<'a>, Error> {
    let compress = |source| Error::Compress { source };
    let compressor = match compressor {
        Some(compressor) => compressor,
        none => {
            let mut new = Compressor::new(LEVEL).map_err(compress)?;
            new.set_parameter(CParameter::ChecksumFlag(true)).map_err(compress)?;
            none.insert(new)
        }
    };
    packed.clear();
    packed.reserve(zstd::zstd_safe::compress_bound(raw.len()));
    compressor.compress_to_buffer(raw, packed).map_err(compress)?;
    if packed.len() < raw.len() {
        Ok(Packed { codec: ZSTD, data: packed })
    } else {
        Ok(Packed { codec: PLAIN, data: raw })
    }
}

/// The bytes behind a row.
pub(crate) fn unpack(codec: i64, data: &[u8], raw_bytes: usize) -> Result<Cow<'_, [u8]>, Error> {
    let raw = match codec {
        PLAIN => Cow::Borrowed(data),
        ZSTD => {
            let broken = |err| Error::corrupt(format!("compressed data cannot be read: {err}"));
            let mut decompressor = Decompressor::new().map_err(broken)?;
            Cow::Owned(decompressor.decompress(data, raw_bytes).map_err(broken)?)
        }
        other => return Err(Error::corrupt(format!("unknown compression {other}"))),
    };
    if raw.len() == raw_bytes {
        Ok(raw)
    } else {
        Err(Error::corrupt(format!("{} bytes where {raw_bytes} were written", raw.len())))
    }
}
