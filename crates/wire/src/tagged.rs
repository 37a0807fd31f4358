//! Objects whose kind stands in one of their own fields, read in one pass.
//!
//! What serde derives for an internally tagged enum copies the whole object before it looks at the
//! tag: every string is copied, and JSON cannot be kept as text ([`RawValue`]). Here the tag is
//! taken where it stands. When it is the first key, as nearly everybody writes it, the rest of the
//! object is read straight from the line; else the fields are noted as slices of the line and read
//! in a second pass. Both ways the values borrow from the line.
//!
//! An enum says what its kinds are by [`tagged!`](crate::tagged::tagged), which writes
//! [`Tagged`] and serde's two traits for it:
//!
//! ```ignore
//! tagged! {
//!     /// A shape.
//!     pub enum Shape<'a> by "type" {
//!         /// A circle; read under a second name too.
//!         Circle(Circle<'a>) = "circle" | "disc",
//!         /// Nothing but its name.
//!         Point = "point",
//!     } else {
//!         /// One that is not known: kept as it is.
//!         Unknown(Unknown<'a>),
//!     }
//! }
//! ```
//!
//! Reading needs a deserializer of `serde_json` that can lend (`from_str`, `from_slice`).

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use serde::de::value::{MapAccessDeserializer, MapDeserializer};
use serde::de::{Deserialize, Deserializer, Error, MapAccess, Visitor};
use serde::ser::{Serialize, Serializer};
use serde_json::value::RawValue;

use crate::raw::Raw;
use crate::text::Str;

#[cfg(test)]
mod tests;

/// A type that is read by a tag inside its object.
pub trait Tagged<'de>: Sized {
    /// The fields that may hold the tag; where an object has several, the first of these counts.
    const TAGS: &'static [&'static str];

    /// Reads the other fields of an object of this kind.
    ///
    /// # Errors
    /// When they have another shape.
    fn read<D: Deserializer<'de>>(kind: Str<'de>, rest: D) -> Result<Self, D::Error>;
}

/// Reads the tag wherever it stands, and the object by it.
///
/// # Errors
/// When it is no object, has no tag, or its fields have another shape.
pub fn deserialize<'de, D: Deserializer<'de>, T: Tagged<'de>>(
    deserializer: D,
) -> Result<T, D::Error> {
    deserializer.deserialize_map(TaggedVisitor(PhantomData))
}

struct TaggedVisitor<T>(PhantomData<T>);

impl<'de, T: Tagged<'de>> Visitor<'de> for TaggedVisitor<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "an object with a field {:?}", T::TAGS)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<T, A::Error> {
        let first: Option<Str<'de>> = map.next_key()?;
        match first {
            Some(key) if Some(&&*key) == T::TAGS.first() => {
                let kind = map.next_value()?;
                T::read(kind, MapAccessDeserializer::new(map))
            }
            Some(key) => {
                let mut fields = vec![(key, map.next_value()?)];
                while let Some(field) = map.next_entry()? {
                    fields.push(field);
                }
                by_fields(fields)
            }
            None => Err(A::Error::custom("an empty object has no kind")),
        }
    }
}

/// The second pass, for a tag that is not the first key.
fn by_fields<'de, T: Tagged<'de>, E: Error>(
    mut fields: Vec<(Str<'de>, &'de RawValue)>,
) -> Result<T, E> {
    let find = |tag: &&str| fields.iter().position(|(key, _)| **key == **tag);
    let at = T::TAGS.iter().find_map(find);
    let at = at.ok_or_else(|| E::custom(format_args!("no field {:?}", T::TAGS)))?;
    let (_, kind) = fields.remove(at);
    let kind = serde_json::from_str(kind.get()).map_err(E::custom)?;
    let fields = fields.into_iter().map(|(key, value)| {
        let key: Cow<'de, str> = match key {
            Str::Borrowed(key) => Cow::Borrowed(key),
            Str::Owned(key) => Cow::Owned(key),
        };
        (key, value)
    });
    T::read(kind, MapDeserializer::<_, serde_json::Error>::new(fields)).map_err(E::custom)
}

/// An object of a kind that is not known here, or whose fields nobody needs: passed on as it is.
#[derive(Debug, Clone, Default)]
pub struct Unknown<'a> {
    /// Its kind.
    pub kind: Str<'a>,
    /// The whole object. Its values are as they were written, the tag comes first.
    pub raw: Raw<'a>,
}

impl<'a> Unknown<'a> {
    /// Keeps an object whose tag was taken out.
    ///
    /// # Errors
    /// When the rest is no object.
    pub fn read<'de: 'a, D: Deserializer<'de>>(
        tag: &'static str,
        kind: Str<'a>,
        rest: D,
    ) -> Result<Self, D::Error> {
        struct Fields<'b>(&'b str, &'b str);

        impl<'de> Visitor<'de> for Fields<'_> {
            type Value = Box<RawValue>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Box<RawValue>, A::Error> {
                let quoted = |text: &str| serde_json::to_string(text).map_err(A::Error::custom);
                let mut object = format!("{{{}:{}", quoted(self.0)?, quoted(self.1)?);
                while let Some((key, value)) = map.next_entry::<Str<'de>, &'de RawValue>()? {
                    object.push(',');
                    object.push_str(&quoted(&key)?);
                    object.push(':');
                    object.push_str(value.get());
                }
                object.push('}');
                RawValue::from_string(object).map_err(A::Error::custom)
            }
        }

        let raw = Raw::Owned(rest.deserialize_map(Fields(tag, &kind))?);
        Ok(Self { kind, raw })
    }
}

impl Serialize for Unknown<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.raw.serialize(serializer)
    }
}

/// Reads an object and forgets it; for kinds that are nothing but their name.
///
/// # Errors
/// When it is no object.
pub fn skip<'de, D: Deserializer<'de>>(rest: D) -> Result<(), D::Error> {
    serde::de::IgnoredAny::deserialize(rest).map(|_| ())
}

/// Writes an enum of tagged objects with its reading and writing; see the [module](self).
macro_rules! tagged {
    (
        $(#[$meta:meta])*
        $vis:vis enum $enum:ident<$life:lifetime> by $tag:literal $(or $tags:literal)* {
            $(
                $(#[$doc:meta])*
                $variant:ident $(($body:ty))? = $name:literal $(| $alias:literal)*,
            )*
        } else {
            $(#[$other_doc:meta])*
            $other:ident($other_body:ty),
        }
    ) => {
        $(#[$meta])*
        #[derive(Debug, Clone, serde::Serialize)]
        #[serde(tag = $tag)]
        $vis enum $enum<$life> {
            $(
                $(#[$doc])*
                #[serde(rename = $name)]
                $variant $(($body))?,
            )*
            $(#[$other_doc])*
            #[serde(untagged)]
            $other($other_body),
        }

        impl $enum<'_> {
            /// What stands in the tag when it is written.
            $vis fn kind(&self) -> &str {
                match self {
                    $(Self::$variant $(($crate::tagged::tagged!(@any $body)))? => $name,)*
                    Self::$other(other) => &other.kind,
                }
            }
        }

        impl<'de: $life, $life> $crate::tagged::Tagged<'de> for $enum<$life> {
            const TAGS: &'static [&'static str] = &[$tag $(, $tags)*];

            fn read<D: serde::Deserializer<'de>>(
                kind: $crate::text::Str<'de>,
                rest: D,
            ) -> Result<Self, D::Error> {
                match &*kind {
                    $($name $(| $alias)* => {
                        $crate::tagged::tagged!(@read Self::$variant, rest $(, $body)?)
                    })*
                    _ => $crate::tagged::Unknown::read($tag, kind, rest).map(Self::$other),
                }
            }
        }

        impl<'de: $life, $life> serde::Deserialize<'de> for $enum<$life> {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                $crate::tagged::deserialize(deserializer)
            }
        }
    };
    (@any $body:ty) => { _ };
    (@read $variant:path, $rest:ident, $body:ty) => {
        <$body as serde::Deserialize>::deserialize($rest).map($variant)
    };
    (@read $variant:path, $rest:ident) => {
        $crate::tagged::skip($rest).map(|()| $variant)
    };
}
pub(crate) use tagged;
