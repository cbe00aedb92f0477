//! Prepared statements over the socket of a connection in plain text.
//!
//! Purpose: the client library logs in, prepares and runs texts; executing through it costs a third
//! of a load's processor time: it reads through 4 MiB of memory and allocates and copies each row
//! three times. Here an answer is read into one small buffer, and its values are taken from there.
//! Invariants: both use the socket in turns, for a whole command and its whole answer; what is left
//! of an answer is an error of the next command. What is read is the same as by the library.

use std::io::{self, ErrorKind, Read, Write};
use std::ops::Range;
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::net::UnixStream;

use iostrata_database::target::{Rows, Value};
use mysql::consts::{CapabilityFlags, ColumnFlags, ColumnType};
use mysql::{Column, Conn, DriverError, Error, Statement, Value as Raw};
use mysql_common::io::{BufMutExt, ParseBuf};
use mysql_common::packets::ErrPacket;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{
    PidfdFlags, PidfdGetfdFlags, Resource, getpid, getrlimit, pidfd_getfd, pidfd_open,
};

use crate::kind::{self, ValueKind};

/// An answer of a hundred rows at once, in the processor's cache.
const BUFFER_BYTES: usize = 32 << 10;
/// Files and connections that may be opened yet, whatever sessions take.
const FREE_FILES: u64 = 256;

/// Length and sequence number in front of each chunk of a packet.
const HEADER_BYTES: usize = 4;
/// A chunk of this length is continued by the next one.
const CHUNK_BYTES: usize = 0xff_ffff;
const EXECUTE: u8 = 0x17;
const OK: u8 = 0;
const END: u8 = 0xfe;
const REFUSAL: u8 = 0xff;
const FILE_WANTED: u8 = 0xfb;

/// The socket of a connection, with what is sent and received.
#[derive(Debug)]
pub(crate) struct Wire {
    socket: UnixStream,
    /// The connection's own; none waits without end.
    read_timeout: Option<Timespec>,
    request: Vec<u8>,
    packets: Packets,
}

impl Wire {
    /// The socket of a connection that is not encrypted. `None` where the kernel gives no second
    /// descriptor of it, or few are left.
    pub(crate) fn of(conn: &Conn) -> Option<Self> {
        let socket = second_descriptor(conn.as_raw_fd())?;
        let read_timeout = socket.read_timeout().ok()?.map(Timespec::try_from).transpose().ok()?;
        Some(Self { socket, read_timeout, request: Vec::new(), packets: Packets::new() })
    }

    /// Makes the request that executes a statement; whether it fits one chunk.
    pub(crate) fn prepare(
        &mut self,
        statement: &Statement,
        takes: &[(usize, ValueKind)],
        args: &[Value<'_>],
    ) -> bool {
        assert_eq!(usize::from(statement.num_params()), takes.len(), "question marks");
        execute_request(statement.id(), takes, args, &mut self.request);
        self.request.len() - HEADER_BYTES < CHUNK_BYTES
    }

    /// Sends the request and takes the answer. `columns` are those of the statement's last answer:
    /// MariaDB sends them again only after they have changed.
    pub(crate) fn execute(
        &mut self,
        columns: &mut Vec<WireColumn>,
        each: impl FnMut(WireRow<'_>) -> Option<()>,
    ) -> Result<DrainResult, Error> {
        let Self { socket, read_timeout, request, packets } = self;
        packets.begin()?;
        socket.write_all(request)?;
        await_answer(socket, read_timeout.as_ref())?;
        answer(packets, socket, columns, each)
    }
}

/// Waits until something can be read; fails as a read does when the time is over. A thread that
/// waits in the read of a Unix socket is also woken when the server takes the request: half as many
/// context switches again.
fn await_answer(socket: &UnixStream, read_timeout: Option<&Timespec>) -> io::Result<()> {
    match poll(&mut [PollFd::new(socket, PollFlags::IN)], read_timeout) {
        Ok(0) => Err(ErrorKind::WouldBlock.into()),
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Another descriptor of a socket of this process; `None` where few files may be opened besides.
/// Sending and receiving are the same for a socket of TCP.
fn second_descriptor(socket: RawFd) -> Option<UnixStream> {
    let process = pidfd_open(getpid(), PidfdFlags::empty()).ok()?;
    let socket = pidfd_getfd(&process, socket, PidfdGetfdFlags::empty()).ok()?;
    let files_max = getrlimit(Resource::Nofile).current;
    let is_scarce = files_max.is_some_and(|most| socket.as_raw_fd() as u64 + FREE_FILES > most);
    (!is_scarce).then(|| UnixStream::from(socket))
}

/// Writes the packet that executes a statement.
fn execute_request(
    statement: u32,
    takes: &[(usize, ValueKind)],
    args: &[Value<'_>],
    out: &mut Vec<u8>,
) {
    out.clear();
    out.extend_from_slice(&[0; HEADER_BYTES]);
    out.push(EXECUTE);
    out.extend_from_slice(&statement.to_le_bytes());
    // No cursor; once.
    out.extend_from_slice(&[0, 1, 0, 0, 0]);
    if !takes.is_empty() {
        let nulls = out.len();
        out.resize(nulls + takes.len().div_ceil(8), 0);
        // Types follow.
        out.push(1);
        let types = out.len();
        out.resize(types + 2 * takes.len(), 0);
        for (nth, (at, kind)) in takes.iter().enumerate() {
            let of = put_parameter(args[*at], *kind, out);
            out[types + 2 * nth] = of as u8;
            if of == ColumnType::MYSQL_TYPE_NULL {
                out[nulls + nth / 8] |= 1 << (nth % 8);
            }
        }
    }
    let length = (out.len() - HEADER_BYTES) as u32;
    out[..3].copy_from_slice(&length.to_le_bytes()[..3]);
}

/// Writes a parameter and gives its type.
fn put_parameter(value: Value<'_>, kind: ValueKind, out: &mut Vec<u8>) -> ColumnType {
    if let Value::Text(text) = value {
        out.put_lenenc_str(text);
        return ColumnType::MYSQL_TYPE_VAR_STRING;
    }
    match kind::parameter(value, kind) {
        Raw::NULL => ColumnType::MYSQL_TYPE_NULL,
        Raw::Bytes(text) => {
            out.put_lenenc_str(&text);
            ColumnType::MYSQL_TYPE_VAR_STRING
        }
        Raw::Int(number) => {
            out.extend_from_slice(&number.to_le_bytes());
            ColumnType::MYSQL_TYPE_LONGLONG
        }
        Raw::Date(year, month, day, hour, minute, second, _) => {
            let [low, high] = year.to_le_bytes();
            out.extend_from_slice(&[7, low, high, month, day, hour, minute, second]);
            ColumnType::MYSQL_TYPE_DATETIME
        }
        other => unreachable!("{other:?} is no parameter"),
    }
}

/// What came back.
pub(crate) struct DrainResult {
    pub changed: u64,
    /// The first row that was not taken.
    pub odd_row: Option<u64>,
}

/// Reads the answer to an executed statement.
fn answer(
    packets: &mut Packets,
    source: &mut impl Read,
    columns: &mut Vec<WireColumn>,
    mut each: impl FnMut(WireRow<'_>) -> Option<()>,
) -> Result<DrainResult, Error> {
    let mut rest = ParseBuf(packets.next(source)?);
    let count = match rest.0.first() {
        Some(&OK) => {
            let changed = ParseBuf(&rest.0[1..]).checked_eat_lenenc_int();
            let changed = changed.ok_or_else(unexpected)?;
            return Ok(DrainResult { changed, odd_row: None });
        }
        Some(&REFUSAL) => return Err(refusal(rest)),
        None | Some(&FILE_WANTED) => return Err(unexpected()),
        Some(_) => rest.checked_eat_lenenc_int().ok_or_else(unexpected)?,
    };
    // With a number behind it, the columns are sent again unless it is 0.
    if rest.0.first() != Some(&0) {
        columns.clear();
        for _ in 0..count {
            let column = WireColumn::of_packet(packets.next(source)?);
            columns.push(column.ok_or_else(unexpected)?);
        }
    }
    if columns.len() as u64 != count || packets.next(source)?.first() != Some(&END) {
        return Err(unexpected());
    }
    let mut answer = DrainResult { changed: 0, odd_row: None };
    for at in 0_u64.. {
        let packet = packets.next(source)?;
        match packet.first() {
            Some(&OK) => {
                if each(WireRow { columns, packet }).is_none() {
                    answer.odd_row.get_or_insert(at);
                }
            }
            Some(&END) => break,
            Some(&REFUSAL) => return Err(refusal(ParseBuf(packet))),
            _ => return Err(unexpected()),
        }
    }
    Ok(answer)
}

fn unexpected() -> Error {
    Error::DriverError(DriverError::UnexpectedPacket)
}

/// The error in the packet of a server that refused.
fn refusal(mut packet: ParseBuf<'_>) -> Error {
    match packet.parse::<ErrPacket<'_>>(CapabilityFlags::CLIENT_PROTOCOL_41) {
        Ok(ErrPacket::Error(error)) => Error::MySqlError(error.into()),
        _ => unexpected(),
    }
}

/// Packets as they come in.
#[derive(Debug)]
struct Packets {
    buffer: Vec<u8>,
    /// What has been received and not yet been taken.
    unread: Range<usize>,
    /// A packet of several chunks.
    joined: Vec<u8>,
    /// The number that the next chunk has.
    sequence: u8,
}

impl Packets {
    fn new() -> Self {
        Self { buffer: vec![0; BUFFER_BYTES], unread: 0..0, joined: Vec::new(), sequence: 0 }
    }

    /// Before a request of one chunk is sent.
    fn begin(&mut self) -> Result<(), Error> {
        self.sequence = 1;
        match self.unread.is_empty() {
            true => Ok(()),
            false => Err(Error::DriverError(DriverError::PacketOutOfSync)),
        }
    }

    /// The next packet.
    fn next(&mut self, source: &mut impl Read) -> Result<&[u8], Error> {
        let mut chunk = self.chunk(source)?;
        if chunk.len() < CHUNK_BYTES {
            return Ok(&self.buffer[chunk]);
        }
        self.joined.clear();
        loop {
            self.joined.extend_from_slice(&self.buffer[chunk.clone()]);
            if chunk.len() < CHUNK_BYTES {
                return Ok(&self.joined);
            }
            chunk = self.chunk(source)?;
        }
    }

    /// Where the next chunk is in the buffer.
    fn chunk(&mut self, source: &mut impl Read) -> Result<Range<usize>, Error> {
        self.receive(HEADER_BYTES, source)?;
        let header = &self.buffer[self.unread.start..][..HEADER_BYTES];
        let length = u32::from_le_bytes([header[0], header[1], header[2], 0]) as usize;
        if header[3] != self.sequence {
            return Err(Error::DriverError(DriverError::PacketOutOfSync));
        }
        self.sequence = self.sequence.wrapping_add(1);
        self.receive(HEADER_BYTES + length, source)?;
        let start = self.unread.start + HEADER_BYTES;
        self.unread.start = start + length;
        Ok(start..start + length)
    }

    /// Waits until so much is unread.
    fn receive(&mut self, bytes: usize, source: &mut impl Read) -> io::Result<()> {
        if self.unread.len() >= bytes {
            return Ok(());
        }
        self.buffer.copy_within(self.unread.clone(), 0);
        self.unread = 0..self.unread.len();
        if self.buffer.len() < bytes {
            self.buffer.resize(bytes, 0);
        }
        while self.unread.len() < bytes {
            match source.read(&mut self.buffer[self.unread.end..]) {
                Ok(0) => {
                    return Err(io::Error::new(ErrorKind::BrokenPipe, "server disconnected"));
                }
                Ok(received) => self.unread.end += received,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

/// What the values of a column are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WireColumn {
    of: ColumnType,
    is_unsigned: bool,
}

impl WireColumn {
    pub(crate) fn of(column: &Column) -> Self {
        let is_unsigned = column.flags().contains(ColumnFlags::UNSIGNED_FLAG);
        Self { of: column.column_type(), is_unsigned }
    }

    /// Reads the last twelve bytes of a column's packet, which have a fixed form. The library's
    /// parser copies five names first, for each answer.
    fn of_packet(packet: &[u8]) -> Option<Self> {
        let [_, _, _, _, _, _, of, flags, _, _, _, _] = packet.last_chunk()?;
        let is_unsigned = u16::from(*flags) & ColumnFlags::UNSIGNED_FLAG.bits() != 0;
        Some(Self { of: ColumnType::try_from(*of).ok()?, is_unsigned })
    }

    /// Adds the value that comes next. `None` when it is nothing that such a column holds.
    #[inline]
    fn take(self, rest: &mut ParseBuf<'_>, kind: ValueKind, out: &mut Rows) -> Option<()> {
        use ColumnType as T;
        let raw = match self.of {
            T::MYSQL_TYPE_TINY => self.number(rest, 1)?,
            T::MYSQL_TYPE_SHORT | T::MYSQL_TYPE_YEAR => self.number(rest, 2)?,
            T::MYSQL_TYPE_LONG | T::MYSQL_TYPE_INT24 => self.number(rest, 4)?,
            T::MYSQL_TYPE_LONGLONG => self.number(rest, 8)?,
            T::MYSQL_TYPE_DATE | T::MYSQL_TYPE_DATETIME | T::MYSQL_TYPE_TIMESTAMP => {
                date(rest.checked_eat_u8_str()?)?
            }
            T::MYSQL_TYPE_FLOAT | T::MYSQL_TYPE_DOUBLE | T::MYSQL_TYPE_TIME => return None,
            _ => return kind::take_bytes(rest.checked_eat_lenenc_str()?, kind, out),
        };
        kind::take(Some(&raw), kind, out)
    }

    fn number(self, rest: &mut ParseBuf<'_>, bytes: usize) -> Option<Raw> {
        let mut word = [0; 8];
        word[..bytes].copy_from_slice(rest.checked_eat(bytes)?);
        let (number, above) = (u64::from_le_bytes(word), 64 - 8 * bytes);
        Some(match self.is_unsigned {
            true => Raw::UInt(number),
            false => Raw::Int((number << above).cast_signed() >> above),
        })
    }
}

/// A moment; what it ends without is zero.
fn date(sent: &[u8]) -> Option<Raw> {
    let mut all = [0; 11];
    all.get_mut(..sent.len())?.copy_from_slice(sent);
    let [low, high, month, day, hour, minute, second, ..] = all;
    Some(Raw::Date(u16::from_le_bytes([low, high]), month, day, hour, minute, second, 0))
}

/// A row in the buffer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WireRow<'a> {
    columns: &'a [WireColumn],
    packet: &'a [u8],
}

impl WireRow<'_> {
    pub(crate) fn is_null(&self, at: usize) -> bool {
        // The first two bits have no meaning.
        let bit = at + 2;
        self.packet.get(1 + bit / 8).is_some_and(|byte| byte & 1 << (bit % 8) != 0)
    }

    /// Adds its values to the rows. `None` when one is nothing that such a column holds.
    #[inline]
    pub(crate) fn take(&self, gives: &[ValueKind], out: &mut Rows) -> Option<()> {
        let mut rest = ParseBuf(self.packet.get(1 + (self.columns.len() + 9) / 8..)?);
        for (at, kind) in gives.iter().enumerate() {
            let column = self.columns.get(at)?;
            match self.is_null(at) {
                true => out.push(Value::Null),
                false => column.take(&mut rest, *kind, out)?,
            }
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gives so many bytes at a time.
    struct Pieces<'a>(&'a [u8], usize);

    impl Read for Pieces<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let most = self.1.min(buffer.len());
            Read::read(&mut self.0, &mut buffer[..most])
        }
    }

    /// The packets as they are sent, numbered from one.
    fn sent(packets: &[&[u8]]) -> Vec<u8> {
        let (mut out, mut sequence) = (Vec::new(), 1_u8);
        for packet in packets {
            let mut rest = *packet;
            loop {
                let (chunk, behind) = rest.split_at(rest.len().min(CHUNK_BYTES));
                out.extend_from_slice(&(chunk.len() as u32).to_le_bytes()[..3]);
                out.push(sequence);
                out.extend_from_slice(chunk);
                sequence = sequence.wrapping_add(1);
                rest = behind;
                if chunk.len() < CHUNK_BYTES {
                    break;
                }
            }
        }
        out
    }

    fn column(of: ColumnType, flags: u8) -> Vec<u8> {
        let mut packet = b"\x03def\x00\x00\x00\x01a\x01a\x0c".to_vec();
        packet.extend_from_slice(&[45, 0, 9, 0, 0, 0, of as u8, flags, 0, 0, 0, 0]);
        packet
    }

    const LAST: &[u8] = &[END, 0, 0, 2, 0];

    /// The rows of an answer in pieces of every size.
    fn rows(packets: &[&[u8]], columns: &[WireColumn], gives: &[ValueKind]) -> String {
        let all = sent(packets);
        let read = |piece: usize| {
            let (mut columns, mut out) = (columns.to_vec(), Rows::new(gives.len()));
            let (mut packets, mut source) = (Packets::new(), Pieces(&all, piece));
            packets.begin().unwrap();
            let taken =
                answer(&mut packets, &mut source, &mut columns, |row| row.take(gives, &mut out));
            match taken {
                Ok(DrainResult { changed, odd_row }) => {
                    packets.begin().unwrap();
                    let rows = (0..out.len()).map(|at| out.row(at).collect::<Vec<_>>());
                    format!("{changed} {odd_row:?} {:?}", rows.collect::<Vec<_>>())
                }
                Err(error) => error.to_string(),
            }
        };
        let whole = read(all.len());
        for piece in [1, 2, 3, 5, 7, 11] {
            assert_eq!(read(piece), whole, "in pieces of {piece}");
        }
        whole
    }

    #[test]
    fn an_answer_is_awaited_for_the_read_timeout() {
        let (socket, server) = UnixStream::pair().unwrap();
        let short = Timespec { tv_sec: 0, tv_nsec: 1_000_000 };
        let error = await_answer(&socket, Some(&short)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::WouldBlock, "as of a read");
        (&server).write_all(&[OK]).unwrap();
        await_answer(&socket, Some(&short)).unwrap();
        drop(server);
        await_answer(&socket, None).unwrap();
    }

    #[test]
    fn a_second_descriptor_is_the_same_socket() {
        let (mut here, there) = UnixStream::pair().unwrap();
        let mut second = second_descriptor(there.as_raw_fd()).unwrap();
        here.write_all(b"abc").unwrap();
        let mut all = [0; 3];
        second.read_exact(&mut all).unwrap();
        assert_eq!(&all, b"abc");
        assert!(second_descriptor(RawFd::MAX).is_none());
    }

    #[test]
    fn values_are_read_by_the_types_of_their_columns() {
        use ColumnType as T;
        let of = [
            (T::MYSQL_TYPE_TINY, 0),
            (T::MYSQL_TYPE_SHORT, 32),
            (T::MYSQL_TYPE_LONG, 0),
            (T::MYSQL_TYPE_LONGLONG, 0),
            (T::MYSQL_TYPE_NEWDECIMAL, 0),
            (T::MYSQL_TYPE_DATETIME, 0),
            (T::MYSQL_TYPE_VAR_STRING, 0),
            (T::MYSQL_TYPE_LONGLONG, 32),
        ];
        let columns: Vec<Vec<u8>> = of.map(|(of, flags)| column(of, flags)).into();
        let (number, cents) = (ValueKind::Number, ValueKind::Amount(12, 2));
        let gives = [number, number, number, number, cents, ValueKind::Moment, ValueKind::Text];
        // The last column is nothing, which the second byte of the bitmap holds.
        let mut row = vec![OK, 0, 0b10];
        row.extend_from_slice(&[0xff, 0xff, 0xff]);
        row.extend_from_slice(&(-7_i32).to_le_bytes());
        row.extend_from_slice(&i64::MIN.to_le_bytes());
        row.extend_from_slice(b"\x06-12.05");
        row.extend_from_slice(&[7, 0xb2, 0x07, 1, 2, 0, 0, 3]);
        row.extend_from_slice(b"\x02ab");
        let mut packets: Vec<&[u8]> = vec![&[8]];
        packets.extend(columns.iter().map(Vec::as_slice));
        packets.extend([LAST, &row, LAST]);
        let all = [&gives[..], &[number]].concat();
        let values = "-1, 65535, -7, -9223372036854775808, -1205, 86403, \"ab\", null";
        assert_eq!(rows(&packets, &[], &all), format!("0 None [[{values}]]"));
    }

    #[test]
    fn a_value_of_another_type_is_an_odd_row_and_the_answer_is_read_to_its_end() {
        let text = column(ColumnType::MYSQL_TYPE_VAR_STRING, 0);
        let float = column(ColumnType::MYSQL_TYPE_DOUBLE, 0);
        let packets = |column| [&[1_u8][..], column, LAST, b"\0\0\x017", b"\0\0\x01x", LAST];
        let number = &[ValueKind::Number];
        assert_eq!(rows(&packets(&text), &[], number), "0 Some(1) [[7]]");
        assert_eq!(rows(&packets(&float), &[], number), "0 Some(0) []");
        let cut = [&[1_u8][..], &text, LAST, b"\0\0\x05x", LAST];
        assert_eq!(rows(&cut, &[], &[ValueKind::Text]), "0 Some(0) []");
    }

    #[test]
    fn columns_that_are_not_sent_again_are_those_of_the_last_answer() {
        let text = [WireColumn { of: ColumnType::MYSQL_TYPE_STRING, is_unsigned: false }];
        let long = column(ColumnType::MYSQL_TYPE_LONG, 0);
        let row: &[u8] = &[OK, 0, 1, b'7', 0, 0];
        let number = &[ValueKind::Number];
        assert_eq!(rows(&[&[1, 0], LAST, row, LAST], &text, number), "0 None [[7]]");
        assert_eq!(rows(&[&[1, 1], &long, LAST, row, LAST], &text, number), "0 None [[14081]]");
        let none = DriverError::UnexpectedPacket.to_string();
        assert!(rows(&[&[2, 0], LAST, LAST], &text, number).contains(&none));
    }

    #[test]
    fn rows_that_changed_and_refusals_are_those_of_the_packet() {
        let ok: &[u8] = &[OK, 0xfc, 1, 2, 0, 2, 0, 0, 0];
        assert_eq!(rows(&[ok], &[], &[]), "513 None []");
        let refused: &[u8] = b"\xff\xbd\x04#40001Deadlock found";
        assert!(rows(&[refused], &[], &[]).contains("ERROR 1213 (40001): Deadlock found"));
        let column = column(ColumnType::MYSQL_TYPE_LONG, 0);
        let late = rows(&[&[1], &column, LAST, refused], &[], &[ValueKind::Number]);
        assert!(late.contains("ERROR 1213 (40001)"), "{late}");
    }

    #[test]
    fn what_an_answer_leaves_or_lacks_is_an_error() {
        let out_of_sync = DriverError::PacketOutOfSync.to_string();
        let read = |all: &[u8]| {
            let mut packets = Packets::new();
            packets.begin().unwrap();
            let result = answer(&mut packets, &mut &*all, &mut Vec::new(), |_| Some(()));
            result.and_then(|_| packets.begin()).unwrap_err().to_string()
        };
        let ok: &[u8] = &[OK, 0, 0, 2, 0, 0, 0];
        assert!(read(&sent(&[ok, ok])).contains(&out_of_sync));
        let mut late = sent(&[ok]);
        late[3] = 2;
        assert!(read(&late).contains(&out_of_sync));
        assert!(read(&sent(&[ok])[..6]).contains("server disconnected"));
    }

    #[test]
    fn a_row_of_several_chunks_is_one() {
        let column = column(ColumnType::MYSQL_TYPE_LONG_BLOB, 0);
        for length in [CHUNK_BYTES - 7, CHUNK_BYTES - 6, CHUNK_BYTES + 9] {
            let mut row = vec![OK, 0];
            row.put_lenenc_str(&vec![b'x'; length]);
            let all = sent(&[&[1], &column, LAST, &row, LAST]);
            let (mut packets, mut out) = (Packets::new(), Rows::new(1));
            packets.begin().unwrap();
            answer(&mut packets, &mut &*all, &mut Vec::new(), |row| {
                row.take(&[ValueKind::Text], &mut out)
            })
            .unwrap();
            assert_eq!((out.len(), out.text_bytes()), (1, length));
        }
    }

    #[test]
    fn a_request_has_types_and_values_and_a_bit_for_each_null() {
        let text = vec![b'y'; 300];
        let args = [
            Value::Int(-2),
            Value::Null,
            Value::Text(&text),
            Value::Int(1_050),
            Value::Int(86_403),
        ];
        let number = ValueKind::Number;
        let kinds = [number, number, ValueKind::Text, ValueKind::Amount(9, 2), ValueKind::Moment];
        let takes: Vec<(usize, ValueKind)> = kinds.into_iter().enumerate().collect();
        let mut out = vec![1, 2, 3];
        execute_request(7, &takes, &args, &mut out);
        let mut body = vec![EXECUTE, 7, 0, 0, 0, 0, 1, 0, 0, 0, 0b10, 1];
        body.extend_from_slice(&[8, 0, 6, 0, 253, 0, 253, 0, 12, 0]);
        body.extend_from_slice(&(-2_i64).to_le_bytes());
        body.extend_from_slice(&[0xfc, 44, 1]);
        body.extend_from_slice(&text);
        body.extend_from_slice(b"\x0510.50");
        body.extend_from_slice(&[7, 0xb2, 0x07, 1, 2, 0, 0, 3]);
        let length = (body.len() as u32).to_le_bytes();
        assert_eq!(out, [&length[..3], &[0], &body].concat());
        execute_request(7, &[], &[], &mut out);
        assert_eq!(out, [10, 0, 0, 0, EXECUTE, 7, 0, 0, 0, 0, 1, 0, 0, 0]);
    }
}
