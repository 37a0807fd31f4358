//! Identifiers. Each is a type of its own, so that no bare string crosses a function boundary.

use std::borrow::Borrow;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

macro_rules! string_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
        #[serde(transparent)]
        pub struct $name(#[schemars(with = "String")] Arc<str>);

        impl $name {
            /// Wraps a string.
            pub fn new(id: impl Into<Arc<str>>) -> Self {
                Self(id.into())
            }

            /// The id as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(&*self.0, f)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl From<&str> for $name {
            fn from(id: &str) -> Self {
                Self(id.into())
            }
        }

        // A map is asked for the text alone.
        impl Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }
    };
}

string_id!(
    /// A turn, unique within its conversation (`t1`, `t2`, …).
    TurnId
);
string_id!(
    /// An item, unique within its conversation. Drivers take the agent's own id where it has one.
    ItemId
);
string_id!(
    /// A request for an approval or an answer, unique within its conversation.
    RequestId
);

/// The name under which a user finds a conversation again.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, JsonSchema)]
#[serde(transparent)]
pub struct ConversationKey(#[schemars(with = "String")] Arc<str>);

/// Why a text cannot name a conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadKey(String);

impl fmt::Display for BadKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for BadKey {}

impl ConversationKey {
    /// The longest key, in bytes.
    pub const MAX: usize = 200;

    /// Checks and wraps a key: 1 to 200 bytes, no control characters, no leading `-`.
    ///
    /// # Errors
    /// [`BadKey`] with a sentence a user can act on.
    pub fn new(key: &str) -> Result<Self, BadKey> {
        if key.is_empty() {
            return Err(BadKey("a conversation key cannot be empty".into()));
        }
        if key.len() > Self::MAX {
            return Err(BadKey(format!(
                "a conversation key has at most {} bytes, this one has {}",
                Self::MAX,
                key.len()
            )));
        }
        if key.starts_with('-') {
            return Err(BadKey("a conversation key cannot start with '-'".into()));
        }
        if key.chars().any(char::is_control) {
            return Err(BadKey("a conversation key cannot contain control characters".into()));
        }
        Ok(Self(key.into()))
    }

    /// The key as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl<'de> Deserialize<'de> for ConversationKey {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::new(&text).map_err(serde::de::Error::custom)
    }
}

impl std::str::FromStr for ConversationKey {
    type Err = BadKey;

    fn from_str(text: &str) -> Result<Self, BadKey> {
        Self::new(text)
    }
}

impl fmt::Debug for ConversationKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&*self.0, f)
    }
}

impl fmt::Display for ConversationKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

macro_rules! number_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(
            Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash,
            Serialize, Deserialize, JsonSchema,
        )]
        #[serde(transparent)]
        pub struct $name(pub u64);

        impl $name {
            /// The one after this.
            #[must_use]
            pub fn next(self) -> Self {
                Self(self.0 + 1)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

number_id!(
    /// Position of a durable event in its conversation: 1, 2, 3, … without a gap.
    Seq
);
number_id!(
    /// Generation of a conversation's owner; it grows each time the owner changes.
    Epoch
);
number_id!(
    /// Position of a raw frame in its conversation, both directions and stderr counted together.
    FrameNo
);

/// A moment, in JSON an RFC 3339 text in UTC with milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, JsonSchema)]
#[schemars(transparent)]
pub struct Timestamp(#[schemars(with = "String")] i64);

impl Timestamp {
    /// A moment from milliseconds since 1970.
    pub fn from_millis(millis: i64) -> Self {
        Self(millis)
    }

    /// Milliseconds since 1970.
    pub fn as_millis(self) -> i64 {
        self.0
    }

    /// The present, from the system clock, whatever that says.
    pub fn now() -> Self {
        let millis = |time: Duration| i64::try_from(time.as_millis()).unwrap_or(i64::MAX);
        Self(match SystemTime::now().duration_since(UNIX_EPOCH) {
            Ok(since) => millis(since),
            Err(before) => millis(before.duration()).saturating_neg(),
        })
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match jiff::Timestamp::from_millisecond(self.0) {
            Ok(moment) => write!(f, "{moment:.3}"),
            Err(_) => f.write_str("1970-01-01T00:00:00.000Z"),
        }
    }
}

impl Serialize for Timestamp {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let moment = jiff::Timestamp::deserialize(deserializer)?;
        Ok(Self(moment.as_millisecond()))
    }
}
