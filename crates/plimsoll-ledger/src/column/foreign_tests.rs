//! Files in the shapes that others write, and the text that is made of them.

use std::sync::Arc;

use bytes::Bytes;
use parquet::basic::{Compression, Encoding};
use parquet::column::writer::ColumnWriter;
use parquet::data_type::{ByteArray, FixedLenByteArray, Int96};
use parquet::file::properties::{WriterProperties, WriterPropertiesBuilder, WriterVersion};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use proptest::prelude::*;

use super::*;

/// Known values, definition levels and repetition levels of a column.
#[derive(Clone, Copy)]
pub(crate) enum Put<'a> {
    Flags(&'a [bool], &'a [i16], &'a [i16]),
    Ints(&'a [i32], &'a [i16], &'a [i16]),
    Longs(&'a [i64], &'a [i16], &'a [i16]),
    Moments(&'a [Int96], &'a [i16], &'a [i16]),
    Floats(&'a [f32], &'a [i16], &'a [i16]),
    Reals(&'a [f64], &'a [i16], &'a [i16]),
    Bytes(&'a [&'a [u8]], &'a [i16], &'a [i16]),
}

/// A file of one row group.
pub(crate) fn packed(schema: &str, columns: &[Put<'_>], packing: Compression) -> Vec<u8> {
    written(schema, columns, WriterProperties::builder().set_compression(packing))
}

fn written(schema: &str, columns: &[Put<'_>], properties: WriterPropertiesBuilder) -> Vec<u8> {
    let schema = Arc::new(parse_message_type(schema).expect("a schema"));
    let properties = Arc::new(properties.build());
    let mut file = SerializedFileWriter::new(Vec::new(), schema, properties).expect("a file");
    let mut group = file.next_row_group().expect("a group");
    for column in columns {
        let mut writer = group.next_column().expect("a column").expect("as many as the schema has");
        macro_rules! put {
            ($writer:expr, $values:expr, $levels:expr, $repeats:expr) => {
                $writer.write_batch($values, some($levels), some($repeats)).expect("written")
            };
        }
        match (writer.untyped(), column) {
            (ColumnWriter::BoolColumnWriter(w), Put::Flags(v, l, r)) => put!(w, v, l, r),
            (ColumnWriter::Int32ColumnWriter(w), Put::Ints(v, l, r)) => put!(w, v, l, r),
            (ColumnWriter::Int64ColumnWriter(w), Put::Longs(v, l, r)) => put!(w, v, l, r),
            (ColumnWriter::Int96ColumnWriter(w), Put::Moments(v, l, r)) => put!(w, v, l, r),
            (ColumnWriter::FloatColumnWriter(w), Put::Floats(v, l, r)) => put!(w, v, l, r),
            (ColumnWriter::DoubleColumnWriter(w), Put::Reals(v, l, r)) => put!(w, v, l, r),
            (ColumnWriter::ByteArrayColumnWriter(w), Put::Bytes(v, l, r)) => {
                let values: Vec<ByteArray> = v.iter().map(|v| v.to_vec().into()).collect();
                put!(w, &values, l, r)
            }
            (ColumnWriter::FixedLenByteArrayColumnWriter(w), Put::Bytes(v, l, r)) => {
                let values: Vec<FixedLenByteArray> = v.iter().map(|v| v.to_vec().into()).collect();
                put!(w, &values, l, r)
            }
            _ => panic!("values of another type than the column"),
        };
        writer.close().expect("closed");
    }
    group.close().expect("closed");
    file.into_inner().expect("closed")
}

fn some<T>(levels: &[T]) -> Option<&[T]> {
    (!levels.is_empty()).then_some(levels)
}

/// The rows of a file, fields with `|` between them.
fn rows(bytes: Vec<u8>) -> Vec<String> {
    let opened = Opened::new(Bytes::from(bytes)).expect("a file");
    let mut rows = Vec::new();
    // Fewer than a file has, so that batches meet within it.
    each_batch(&opened, 2, |batch| {
        batch.each_record(|_, record| {
            rows.push(record.map_or_else(
                |problem| format!("!{problem}"),
                |record| record.iter().collect::<Vec<_>>().join("|"),
            ));
        });
        true
    })
    .expect("readable");
    rows
}

/// One optional column of one type: what its values are shown as.
fn check(of: &str, values: Put<'_>, expect: &[&str]) {
    let schema = format!("message log {{ required {of}; }}");
    assert_eq!(rows(packed(&schema, &[values], Compression::SNAPPY)), expect, "{of}");
}

#[test]
fn every_type_is_shown() {
    check("boolean x", Put::Flags(&[true, false], &[], &[]), &["true", "false"]);
    check("int32 x", Put::Ints(&[-1, 7], &[], &[]), &["-1", "7"]);
    check("int32 x (INTEGER(8, true))", Put::Ints(&[-1], &[], &[]), &["-1"]);
    check("int32 x (INTEGER(32, false))", Put::Ints(&[-1], &[], &[]), &["4294967295"]);
    check("int32 x (UINT_16)", Put::Ints(&[65_535], &[], &[]), &["65535"]);
    check("int64 x", Put::Longs(&[i64::MIN], &[], &[]), &["-9223372036854775808"]);
    check("int64 x (INTEGER(64, false))", Put::Longs(&[-1], &[], &[]), &["18446744073709551615"]);
    check("float x", Put::Floats(&[0.1, 3.0], &[], &[]), &["0.1", "3.0"]);
    check("double x", Put::Reals(&[0.1, 1e300, f64::NAN], &[], &[]), &["0.1", "1e300", "NaN"]);
    check("binary x (UTF8)", Put::Bytes(&[b"a", "é".as_bytes()], &[], &[]), &["a", "é"]);
    check("binary x (STRING)", Put::Bytes(&[b"a", b"\xff"], &[], &[]), &["a", "!is no text"]);
    check("binary x (JSON)", Put::Bytes(&[b"{}"], &[], &[]), &["{}"]);
    check("binary x", Put::Bytes(&[b"\x00\xfe"], &[], &[]), &["00fe"]);
    check("fixed_len_byte_array(3) x", Put::Bytes(&[b"\x01\x02\x03"], &[], &[]), &["010203"]);
    check(
        "fixed_len_byte_array(2) x (FLOAT16)",
        Put::Bytes(&[&[0x00, 0x3e], &[0x01, 0x00], &[0x00, 0xfc]], &[], &[]),
        &["1.5", "5.9604645e-8", "-inf"],
    );
}

#[test]
fn decimals_are_exact() {
    let cents = Put::Ints(&[-5, 12_345], &[], &[]);
    check("int32 x (DECIMAL(9, 2))", cents, &["-0.05", "123.45"]);
    check("int64 x (DECIMAL(18, 0))", Put::Longs(&[12], &[], &[]), &["12"]);
    let bytes: &[&[u8]] = &[&[0xff, 0x38], &[0x01, 0x00]];
    check("binary x (DECIMAL(4, 3))", Put::Bytes(bytes, &[], &[]), &["-0.200", "0.256"]);
    let wide = [&[0xff; 16][..], &[0x9c]].concat();
    let large = [&[0x01][..], &[0; 16]].concat();
    check(
        "fixed_len_byte_array(17) x (DECIMAL(38, 1))",
        Put::Bytes(&[&wide, &large], &[], &[]),
        &["-10.0", "!is a decimal of more than 38 digits"],
    );
}

#[test]
fn moments_of_every_unit_are_read() {
    let ms = 1_790_000_000_123;
    for (unit, value) in [("MILLIS", ms), ("MICROS", ms * 1000), ("NANOS", ms * 1_000_000)] {
        let at = Put::Longs(&[value, -1], &[1, 1, 0], &[]);
        for (adjusted, zone) in [("true", "Z"), ("false", "")] {
            let schema =
                format!("message log {{ optional int64 x (TIMESTAMP({unit},{adjusted})); }}");
            let shown = rows(packed(&schema, &[at], Compression::UNCOMPRESSED));
            assert_eq!(shown[0], format!("2026-09-21T14:13:20.123{zone}"), "{unit} {adjusted}");
            assert!(shown[1].starts_with("1969-12-31T23:59:59.9"), "{}", shown[1]);
            assert_eq!(shown[2], "");
        }
    }
    check("int64 x (TIMESTAMP_MILLIS)", Put::Longs(&[0], &[], &[]), &["1970-01-01T00:00:00Z"]);
    check(
        "int64 x (TIMESTAMP(MILLIS,true))",
        Put::Longs(&[i64::MAX], &[], &[]),
        &["!has the moment 9223372036854775807, which no calendar has"],
    );
    check(
        "int32 x (DATE)",
        Put::Ints(&[0, -1, 20_000], &[], &[]),
        &["1970-01-01", "1969-12-31", "2024-10-04"],
    );
    check("int32 x (TIME(MILLIS,true))", Put::Ints(&[36_000_500], &[], &[]), &["10:00:00.5"]);
    check("int64 x (TIME(MICROS,true))", Put::Longs(&[1], &[], &[]), &["00:00:00.000001"]);
    // Half a day and a nanosecond into the first day of 1970, which is Julian day 2,440,588.
    let ns: u64 = 43_200_000_000_001;
    let mut moment = Int96::new();
    moment.set_data(ns as u32, (ns >> 32) as u32, 2_440_588);
    check("int96 x", Put::Moments(&[moment], &[], &[]), &["1970-01-01T12:00:00.000000001"]);
}

/// What is nested is shown as text, and leaves its neighbours alone.
#[test]
fn nested_columns_are_shown() {
    let schema = "message log {
        required int32 before;
        optional group list (LIST) { repeated group list { optional int64 item; } }
        optional group old (LIST) { repeated int32 array; }
        repeated binary bare (UTF8);
        optional group pair { required int32 a; optional binary b (UTF8); }
        optional group map (MAP) { repeated group key_value { required binary key (UTF8); optional double value; } }
        optional group deep (LIST) { repeated group list { optional group item (LIST) { repeated group list { required int32 item; } } } }
        required int32 after;
    }";
    let columns = [
        Put::Ints(&[1, 2, 3], &[], &[]),
        Put::Longs(&[7, 8], &[3, 2, 3, 0, 1], &[0, 1, 1, 0, 0]),
        Put::Ints(&[4, 5], &[0, 2, 2, 1], &[0, 0, 1, 0]),
        Put::Bytes(&[b"x", b"y"], &[0, 1, 1, 0], &[0, 0, 1, 0]),
        Put::Ints(&[6, 9], &[1, 0, 1], &[]),
        Put::Bytes(&[b"s"], &[2, 0, 1], &[]),
        Put::Bytes(&[b"k", b"l"], &[2, 2, 1, 0], &[0, 1, 0, 0]),
        Put::Reals(&[0.5], &[3, 2, 1, 0], &[0, 1, 0, 0]),
        Put::Ints(&[1, 2, 3], &[4, 4, 2, 4, 0, 1], &[0, 2, 1, 1, 0, 0]),
        Put::Ints(&[10, 20, 30], &[], &[]),
    ];
    let expect = [
        "1|[7, , 8]||[]|{a: 6, b: s}|{k: 0.5, l: }|[[1, 2], , [3]]|10",
        "2||[4, 5]|[x, y]||{}||20",
        "3|[]|[]|[]|{a: 9, b: }||[]|30",
    ];
    for version in [WriterVersion::PARQUET_1_0, WriterVersion::PARQUET_2_0] {
        let properties = WriterProperties::builder().set_writer_version(version);
        assert_eq!(rows(written(schema, &columns, properties)), expect, "{version:?}");
    }
}

/// The same text in every encoding of others, and where a dictionary is given up halfway.
#[test]
fn encodings_make_no_difference() {
    let names: Vec<String> = (0..1000).map(|i| format!("name-{}", i % 700)).collect();
    let values: Vec<&[u8]> = names.iter().map(|name| name.as_bytes()).collect();
    let levels: Vec<i16> = (0..1500).map(|i| i16::from(i % 3 != 2)).collect();
    let column = [Put::Bytes(&values, &levels, &[])];
    let mut known = names.iter();
    let expect: Vec<Option<&String>> =
        levels.iter().map(|level| if *level == 1 { known.next() } else { None }).collect();
    let plain = || WriterProperties::builder().set_dictionary_enabled(false);
    let cases = [
        ("dictionary", WriterProperties::builder()),
        (
            "given up",
            WriterProperties::builder()
                .set_dictionary_page_size_limit(2000)
                .set_write_batch_size(50),
        ),
        ("plain", plain().set_data_page_row_count_limit(100).set_write_batch_size(50)),
        ("delta", plain().set_encoding(Encoding::DELTA_BYTE_ARRAY)),
        ("length", plain().set_encoding(Encoding::DELTA_LENGTH_BYTE_ARRAY)),
    ];
    for (name, properties) in cases {
        for version in [WriterVersion::PARQUET_1_0, WriterVersion::PARQUET_2_0] {
            let properties = properties.clone().set_writer_version(version);
            let schema = "message log { optional binary tenant (UTF8); }";
            let bytes = written(schema, &column, properties);
            let shown = rows(bytes.clone());
            let text = |name: &Option<&String>| name.cloned().unwrap_or_default();
            assert_eq!(shown, expect.iter().map(text).collect::<Vec<_>>(), "{name} {version:?}");
            // As a column of ours, in pieces: the first thousand rows are passed over, and then read a few at a time.
            let opened = Opened::new(Bytes::from(bytes)).expect("a file");
            let table = crate::row::Row::schema();
            for skipped in [0, 1, 333, 1000] {
                let mut group = opened.group(0, table, |_| true).expect("a group");
                group.skip(skipped).expect("skipped");
                let mut found: Vec<Option<String>> = Vec::new();
                while found.len() < expect.len() - skipped {
                    let rows = group.take((expect.len() - skipped - found.len()).min(97));
                    let rows = rows.expect("rows");
                    let rows = crate::row::Row::of_columns(&rows).into_iter();
                    found.extend(rows.map(|row| row.tenant));
                }
                let found: Vec<Option<&String>> = found.iter().map(Option::as_ref).collect();
                assert_eq!(found, expect[skipped..], "{name} {version:?} after {skipped}");
            }
        }
    }
}

/// Rows that are shown and read of four, once a byte of a page is another one.
fn damaged(place: usize, byte: u8, v2: bool) -> (usize, usize) {
    let version = if v2 { WriterVersion::PARQUET_2_0 } else { WriterVersion::PARQUET_1_0 };
    let schema = "message log {
        optional binary tenant (UTF8);
        optional int32 prompt_tokens (INTEGER(32, false));
        optional group blocks (LIST) { repeated group list { optional int64 item (INTEGER(64, false)); } }
    }";
    let columns = [
        Put::Bytes(&[b"a", b"b", b"a"], &[1, 0, 1, 1], &[]),
        Put::Ints(&[1, 2, 3], &[1, 1, 0, 1], &[]),
        Put::Longs(&[1, 2, 3], &[3, 3, 0, 1, 3], &[0, 1, 0, 0, 0]),
    ];
    let properties = WriterProperties::builder().set_writer_version(version);
    let mut bytes = written(schema, &columns, properties);
    let footer = bytes.len() - 8;
    let length = bytes[footer..].first_chunk::<4>().expect("four bytes");
    let pages = footer - u32::from_le_bytes(*length) as usize;
    bytes[4 + place % (pages - 4)] = byte;
    let opened = Opened::new(Bytes::from(bytes)).expect("a footer that is whole");
    let mut shown = 0;
    let _ = each_batch(&opened, 100, |batch| {
        batch.each_record(|_, _| shown += 1);
        true
    });
    let mut group = opened.group(0, crate::row::Row::schema(), |_| true).expect("columns");
    let mut rows = 0;
    while let Ok(Some(batch)) = group.next() {
        rows += crate::row::Row::of_columns(&batch).len();
    }
    (shown, rows)
}

/// A decoder that runs over its end is an error of the file.
#[test]
fn a_page_that_a_decoder_runs_over_is_refused() {
    assert!(damaged(983, 18, false).0 <= 4);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(plimsoll_testkit::cases(2_000)))]

    /// Pages that are not what they were are read or refused, and never give more rows than there are.
    #[test]
    fn damaged_pages_are_no_surprise(place in 0usize..1000, byte in any::<u8>(), v2 in any::<bool>()) {
        let (shown, rows) = damaged(place, byte, v2);
        prop_assert!(shown <= 4 && rows <= 4, "{} and {}", shown, rows);
    }
}
