//! Files that are small until they are read. The command line answers or refuses the smallest file that reaches each limit of each
//! reader, in a process of little memory. A new reader, or a new limit of one, is a row of [`READERS`]. `artifacts` has the files
//! that a server reads.

use std::{
    io::{self, Cursor, Read as _, Write as _},
    iter,
};

use hlorank_tests::attackers::messages::gzip;
use hlorank_tests::prelude::*;
use zip::{ZipWriter, write::SimpleFileOptions};

use crate::attacked::confined;

/// A file at a limit of its reader.
struct Reader {
    limit: &'static str,
    content: fn() -> Vec<u8>,
    /// The command, which the file follows.
    command: &'static [&'static str],
    /// What reading it may take.
    bytes: usize,
    /// A part of the refusal; nothing if the file is read.
    says: Option<&'static str>,
}

const INSPECT: &[&str] = &["graph", "inspect"];
const RANK: &[&str] = &[
    "rank",
    "--endpoint=http://127.0.0.1:1",
    "--graph=tests/data/measured/layout_random_window_nchw_train.pb",
    "--configs",
];

/// Data of the command line before it reads a file: its threads, and what its libraries allocate.
const PROCESS_BYTES: usize = 64 << 20;

/// Decompressed bytes up to which a file may have any ratio, and the ratio beyond.
const ANY_RATIO_BYTES: usize = 4 << 20;

const READERS: &[Reader] = &[
    Reader {
        limit: "ratio of gzip",
        content: || gzip(io::repeat(b' ').take(256 << 20)),
        command: INSPECT,
        // The vector doubles: the last, and the one before it.
        bytes: 2 * (64 << 20),
        says: Some("holds more than"),
    },
    Reader {
        limit: "ratio of zstd",
        content: || zstd(0x58, 2_048),
        command: INSPECT,
        bytes: 2 * ANY_RATIO_BYTES + WINDOW_BYTES,
        says: Some("holds more than"),
    },
    Reader {
        limit: "window of zstd",
        content: || zstd(0xa8, 1),
        command: INSPECT,
        bytes: WINDOW_BYTES,
        says: Some("window is larger than 8 MiB"),
    },
    Reader {
        limit: "modules of a log",
        content: || {
            let module = "HloModule m\n\nENTRY e {\n  p = f32[] parameter(0)\n}\n";
            module.repeat(10_001).into_bytes()
        },
        command: INSPECT,
        // As measured for text: 1.4 kB a node, and 2 bytes a byte.
        bytes: 64 << 20,
        says: Some("more than 10000 HLO modules"),
    },
    Reader {
        limit: "dimensions of an array without shapes after it",
        content: || {
            let dimensions = vec!["1"; 60_000].join(",");
            let negate = |node| format!("  p{node} = negate(p{})\n", node - 1);
            let lines: String = (1..=4_000).map(negate).collect();
            let first = format!("  p0 = f32[{dimensions}] parameter(0)\n");
            format!("HloModule m\n\nENTRY e {{\n{first}{lines}}}\n").into_bytes()
        },
        command: INSPECT,
        bytes: 16 << 20,
        says: Some("more than 64 items"),
    },
    Reader {
        // A shape in parentheses is a tuple of a tuple.
        limit: "depth of text",
        content: || {
            let [open, close] = ["(", ")"].map(|one| one.repeat(1 << 20));
            format!("HloModule m\n\nENTRY e {{\n  p = {open}f32[]{close} parameter(0)\n}}\n")
                .into_bytes()
        },
        command: INSPECT,
        bytes: 16 << 20,
        says: None,
    },
    Reader {
        limit: "bytes of an instruction that unfold",
        content: || {
            let long = HloInstructionProto {
                dimensions: vec![1; 4 << 20],
                ..operation("dot", 2, &[1, 1])
            };
            single(vec![operation("parameter", 1, &[]), long])
        },
        command: INSPECT,
        bytes: 32 << 20,
        says: Some("at most 4194304 are allowed"),
    },
    Reader {
        limit: "numbers of an array, by its header",
        content: || {
            npz(&[
                ("node_opcode", "|u1", "(1099511627776,)", 0),
                ("node_feat", "<f4", "(0, 140)", 0),
            ])
        },
        command: INSPECT,
        bytes: 1 << 20,
        says: Some("more than 16777216 numbers"),
    },
    Reader {
        limit: "numbers of an array in few bytes",
        content: || npz(&[("node_opcode", "|u1", "(536870912,)", 512 << 20)]),
        command: INSPECT,
        bytes: 2 << 20,
        says: Some("more than 16777216 numbers"),
    },
    Reader {
        limit: "length of a row, by its header",
        content: || {
            npz(&[
                ("feature_set", "|u1", "(1,)", 1),
                ("node_features", "<f4", "(1, 1)", 4),
                ("edge_index", "<i4", "(0, 2)", 0),
                ("config_features", "<f4", "(1, 1, 2147483647)", 4),
            ])
        },
        command: INSPECT,
        bytes: 1 << 20,
        says: Some("config_features"),
    },
    Reader {
        limit: "form of JSON",
        content: || vec![b'['; 4 << 20],
        command: RANK,
        bytes: 8 << 20,
        says: Some("invalid type"),
    },
];

/// Maximum window of zstd.
const WINDOW_BYTES: usize = 8 << 20;

/// A frame of zeros: a window, and blocks of 128 KiB that repeat one byte. A block takes four bytes.
fn zstd(window: u8, blocks: usize) -> Vec<u8> {
    const REPEATED: u32 = 1;
    let block = |is_last: bool| {
        let header = u32::from(is_last) | REPEATED << 1 | (128 << 10) << 3;
        let [header @ .., _] = header.to_le_bytes();
        [&header[..], b" "].concat()
    };
    let start = vec![0x28, 0xb5, 0x2f, 0xfd, 0, window];
    let middle = iter::repeat_n(block(false), blocks - 1);
    iter::once(start)
        .chain(middle)
        .chain([block(true)])
        .flatten()
        .collect()
}

/// Arrays by name, type and shape, with this number of bytes, which are all the digit 1.
pub(crate) fn npz(arrays: &[(&str, &str, &str, u64)]) -> Vec<u8> {
    let mut archive = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, element, shape, bytes) in arrays {
        archive
            .start_file(format!("{name}.npy"), SimpleFileOptions::default())
            .unwrap();
        let header =
            format!("{{'descr': '{element}', 'fortran_order': False, 'shape': {shape}, }}");
        let length = u16::try_from(header.len()).unwrap().to_le_bytes();
        let start = [b"\x93NUMPY\x01\x00", &length[..], header.as_bytes()].concat();
        archive.write_all(&start).unwrap();
        io::copy(&mut io::repeat(b'1').take(*bytes), &mut archive).unwrap();
    }
    archive.finish().unwrap().into_inner()
}

#[test]
fn every_reader_of_files_takes_what_its_limits_allow_and_no_more() {
    let folder = tempfile::tempdir().unwrap();
    for reader in READERS {
        let path = folder.path().join("file");
        fs::write(&path, (reader.content)()).unwrap();
        let mut confined = confined(&program("hlorank"), PROCESS_BYTES + reader.bytes);
        confined.current_dir(repository("."));
        let started = Instant::now();
        let output = confined.args(reader.command).arg(&path).output().unwrap();
        let message = String::from_utf8_lossy(&output.stderr);
        println!(
            "{}: {} bytes, {} in {:.1?}: {}",
            reader.limit,
            fs::metadata(&path).unwrap().len(),
            output.status,
            started.elapsed(),
            message.lines().next().unwrap_or_default()
        );
        let (code, says) = reader.says.map_or((0, ""), |says| (2, says));
        assert!(
            output.status.code() == Some(code) && message.contains(says),
            "{}: {}, {message}",
            reader.limit,
            output.status
        );
    }
}
