//! Values as PostgreSQL sends and takes them: times, row places and the hash of a key.

use relaybus::Timestamp;
use sqlx::encode::IsNull;
use sqlx::error::BoxDynError;
use sqlx::postgres::types::Oid;
use sqlx::postgres::{PgArgumentBuffer, PgArguments, PgConnection, PgHasArrayType, PgTypeInfo, PgValueRef};
use sqlx::{Arguments, Decode, Encode, Postgres, Type};

pub(super) use crate::ids::{decode_id, encode_id};

/// The binds of one statement, in the order of their numbers.
#[derive(Debug, Default)]
pub(super) struct Binds(pub(super) PgArguments);

impl Binds {
    /// Adds a bind. The types used here cannot fail to encode; an array of more than two billion elements could.
    pub(super) fn push<'t, T: Encode<'t, Postgres> + Type<Postgres>>(&mut self, value: T) {
        let added = self.0.add(value);
        debug_assert!(added.is_ok(), "integers, text, bytes and their arrays always encode");
    }

    pub(super) fn with<'t, T: Encode<'t, Postgres> + Type<Postgres>>(mut self, value: T) -> Self {
        self.push(value);
        self
    }
}

/// Microseconds from the Unix epoch to PostgreSQL's, 2000-01-01.
const EPOCH_OFFSET: i64 = 946_684_800_000_000;
/// The range of `timestamptz`, in microseconds of its own epoch.
const FIRST: i64 = -211_813_488_000_000_000;
const LAST: i64 = 9_223_371_331_199_999_999;

/// A `timestamptz`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Time(i64);

impl Time {
    /// Before every point in time.
    pub(super) const MIN: Self = Self(i64::MIN);
    /// Behind every point in time.
    pub(super) const MAX: Self = Self(i64::MAX);
}

impl From<Timestamp> for Time {
    fn from(at: Timestamp) -> Self {
        if at == Timestamp::MAX {
            return Self(i64::MAX);
        }
        Self(at.as_micros().saturating_sub(EPOCH_OFFSET).clamp(FIRST, LAST))
    }
}

impl From<Time> for Timestamp {
    fn from(time: Time) -> Self {
        match time.0 {
            i64::MAX => Self::MAX,
            micros => Self::from_micros(micros.saturating_add(EPOCH_OFFSET)),
        }
    }
}

impl Type<Postgres> for Time {
    fn type_info() -> PgTypeInfo {
        PgTypeInfo::with_oid(Oid(1184))
    }
}

impl PgHasArrayType for Time {
    fn array_type_info() -> PgTypeInfo {
        PgTypeInfo::with_oid(Oid(1185))
    }
}

impl Encode<'_, Postgres> for Time {
    fn encode_by_ref(&self, buf: &mut PgArgumentBuffer) -> Result<IsNull, BoxDynError> {
        buf.extend_from_slice(&self.0.to_be_bytes());
        Ok(IsNull::No)
    }
}

impl Decode<'_, Postgres> for Time {
    fn decode(value: PgValueRef<'_>) -> Result<Self, BoxDynError> {
        Ok(Self(i64::from_be_bytes(value.as_bytes()?.try_into()?)))
    }
}

/// A `json`. Sent as what it is, the server reads it once; sent as `text`, it copies it twice more.
pub(super) struct JsonText<'t>(pub(super) &'t str);

impl Type<Postgres> for JsonText<'_> {
    fn type_info() -> PgTypeInfo {
        PgTypeInfo::with_oid(Oid(114))
    }
}

impl PgHasArrayType for JsonText<'_> {
    fn array_type_info() -> PgTypeInfo {
        PgTypeInfo::with_oid(Oid(199))
    }
}

impl Encode<'_, Postgres> for JsonText<'_> {
    fn encode_by_ref(&self, buf: &mut PgArgumentBuffer) -> Result<IsNull, BoxDynError> {
        buf.extend_from_slice(self.0.as_bytes());
        Ok(IsNull::No)
    }
}

/// Where a row is: its block and its place there (`tid`). Only a hint; every use compares the row's id too.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Tid {
    pub(super) block: u32,
    pub(super) place: u16,
}

impl Type<Postgres> for Tid {
    fn type_info() -> PgTypeInfo {
        PgTypeInfo::with_oid(Oid(27))
    }
}

impl PgHasArrayType for Tid {
    fn array_type_info() -> PgTypeInfo {
        PgTypeInfo::with_oid(Oid(1010))
    }
}

impl Encode<'_, Postgres> for Tid {
    fn encode_by_ref(&self, buf: &mut PgArgumentBuffer) -> Result<IsNull, BoxDynError> {
        buf.extend_from_slice(&self.block.to_be_bytes());
        buf.extend_from_slice(&self.place.to_be_bytes());
        Ok(IsNull::No)
    }
}

impl Decode<'_, Postgres> for Tid {
    fn decode(value: PgValueRef<'_>) -> Result<Self, BoxDynError> {
        let bytes: [u8; 6] = value.as_bytes()?.try_into()?;
        let [a, b, c, d, e, f] = bytes;
        Ok(Self { block: u32::from_be_bytes([a, b, c, d]), place: u16::from_be_bytes([e, f]) })
    }
}

/// A `tid` or an array of them that is null, by its name: the client does not know these types, and asks the server.
struct NoTid(&'static str);

impl Type<Postgres> for NoTid {
    fn type_info() -> PgTypeInfo {
        PgTypeInfo::with_name("tid")
    }
}

impl Encode<'_, Postgres> for NoTid {
    fn encode_by_ref(&self, _: &mut PgArgumentBuffer) -> Result<IsNull, BoxDynError> {
        Ok(IsNull::Yes)
    }

    fn produces(&self) -> Option<PgTypeInfo> {
        Some(PgTypeInfo::with_name(self.0))
    }
}

/// Lets a connection learn the types of rows' places. Else it would ask for them in the middle of a statement that is not
/// prepared, which the server forgets over the question.
pub(super) async fn learn_types(connection: &mut PgConnection) -> Result<(), sqlx::Error> {
    sqlx::raw_sql("BEGIN").execute(&mut *connection).await?;
    let binds = Binds::default().with(NoTid("tid")).with(NoTid("tid[]"));
    let learn = sqlx::query_with("SELECT $1::tid IS NULL AND $2::tid[] IS NULL", binds.0).persistent(false);
    learn.fetch_one(&mut *connection).await?;
    sqlx::raw_sql("ROLLBACK").execute(connection).await.map(|_| ())
}

/// The number that stands for an ordering key in deliveries: FNV-1a of 64 bit. Stored, so it never changes.
///
/// Two keys of one number are one key to the order: they wait for each other, and nothing else happens to them.
pub(super) fn key_number(key: &str) -> i64 {
    let hash = key
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    hash.cast_signed()
}

/// The number of the advisory lock under which a key's events get their sequence: never negative.
pub(super) fn key_slot(key: i64) -> i32 {
    let bits = key.cast_unsigned();
    let folded = (bits ^ (bits >> 32)) & 0x7fff_ffff;
    i32::try_from(folded).unwrap_or(0)
}

/// The claims of a token as its column holds them; what does not fit matches no row.
pub(super) fn claims_column(claims: i64) -> i32 {
    i32::try_from(claims).unwrap_or(-1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn key_numbers_never_change() {
        // Stored with deliveries: a change of the hash would part a key from its past.
        assert_eq!(key_number(""), -3_750_763_034_362_895_579);
        assert_eq!(key_number("a"), -5_808_556_873_153_909_620);
        assert!((0..10_000).all(|n| key_slot(key_number(&format!("k{n}"))) >= 0));
    }

    #[test]
    fn times_come_back() {
        for micros in [-62_000_000_000_000_000, -1, 0, 1, 253_402_300_799_999_999, i64::MAX] {
            let at = Timestamp::from_micros(micros);
            assert_eq!(Timestamp::from(Time::from(at)), at);
        }
        assert!(Time::MIN < Time::from(Timestamp::from_micros(i64::MIN)));
    }
}
