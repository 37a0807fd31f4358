//! How the bodies of this vocabulary are declared.

/// A body: fields that are always written, then, after `?`, fields that are written when they are
/// there. Every field may be missing when it is read.
macro_rules! body {
    (
        $(#[$meta:meta])*
        $name:ident<$life:lifetime> {
            $($(#[$doc:meta])* $field:ident: $type:ty,)*
        }
        $(? {
            $($(#[$optional_doc:meta])* $optional:ident: $optional_type:ty,)*
        })?
    ) => {
        $(#[$meta])*
        #[derive(
            Debug, Clone, Default, serde::Serialize, serde::Deserialize, schemars::JsonSchema,
        )]
        // Every body that borrows calls its lifetime so.
        #[serde(default, bound(deserialize = "'de: 'a"))]
        pub struct $name<$life> {
            $($(#[$doc])* pub $field: $type,)*
            $($(
                $(#[$optional_doc])*
                #[serde(skip_serializing_if = "Option::is_none")]
                pub $optional: Option<$optional_type>,
            )*)?
        }
    };
}
pub(super) use body;

/// A word out of a set that may grow: one that is not known is kept.
macro_rules! words {
    (
        $(#[$meta:meta])*
        $name:ident { $($(#[$doc:meta])* $variant:ident = $word:literal,)* }
    ) => {
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq, Eq)]
        pub enum $name {
            $($(#[$doc])* $variant,)*
            /// Another word.
            Other(String),
        }

        impl $name {
            /// The word.
            pub fn as_str(&self) -> &str {
                match self {
                    $(Self::$variant => $word,)*
                    Self::Other(word) => word,
                }
            }
        }

        impl schemars::JsonSchema for $name {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                // The set may grow, so the words are examples.
                schemars::json_schema!({"type": "string", "examples": [$($word),*]})
            }
        }

        impl From<&str> for $name {
            fn from(word: &str) -> Self {
                match word {
                    $($word => Self::$variant,)*
                    other => Self::Other(other.to_owned()),
                }
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                crate::text::Str::deserialize(deserializer).map(|word| Self::from(&*word))
            }
        }
    };
}
pub(super) use words;
