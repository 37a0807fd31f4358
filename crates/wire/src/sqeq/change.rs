//! Changes of files, in both forms they have had.

use std::fmt;

use serde::de::{MapAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

use crate::raw::Raw;
use crate::text::Str;

/// Changed files by path, in the order they were written.
#[derive(Debug, Clone, Default)]
pub struct Changes<'a> {
    /// How a change is written.
    pub form: ChangeForm,
    /// Path and change.
    pub files: Vec<(Str<'a>, FileChange<'a>)>,
}

/// How a change is written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ChangeForm {
    /// `{"type": "add", …}`, since 0.60.
    #[default]
    Tagged,
    /// `{"add": {…}}`, up to 0.58.
    Keyed,
}

/// What happened to a file.
#[derive(Debug, Clone)]
pub enum FileChange<'a> {
    /// It is new.
    Add {
        /// Its text.
        content: Str<'a>,
    },
    /// It is gone.
    Delete {
        /// Its text before; the first releases do not tell.
        content: Option<Str<'a>>,
    },
    /// It is different.
    Update {
        /// How.
        unified_diff: Str<'a>,
        /// Where it went.
        move_path: Option<Str<'a>>,
    },
    /// Something that is not known.
    Other(Raw<'a>),
}

/// The fields of every kind, for both forms.
#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
struct Fields<'a> {
    #[serde(borrow, rename = "type", skip_serializing_if = "Option::is_none")]
    kind: Option<Str<'a>>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    content: Option<Str<'a>>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    unified_diff: Option<Str<'a>>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    move_path: Option<Option<Str<'a>>>,
}

impl<'a> FileChange<'a> {
    fn of(kind: &str, fields: Fields<'a>) -> Option<Self> {
        Some(match kind {
            "add" => Self::Add { content: fields.content? },
            "delete" => Self::Delete { content: fields.content },
            "update" => Self::Update {
                unified_diff: fields.unified_diff?,
                move_path: fields.move_path.flatten(),
            },
            _ => return None,
        })
    }

    fn read(raw: &'a RawValue) -> (ChangeForm, Self) {
        #[derive(Default, Deserialize)]
        #[serde(default)]
        struct Keyed<'a> {
            #[serde(borrow)]
            add: Option<Fields<'a>>,
            #[serde(borrow)]
            delete: Option<Fields<'a>>,
            #[serde(borrow)]
            update: Option<Fields<'a>>,
        }
        let tagged: Fields<'a> = serde_json::from_str(raw.get()).unwrap_or_default();
        let other = || Self::Other(Raw::Borrowed(raw));
        if let Some(kind) = tagged.kind.clone() {
            return (ChangeForm::Tagged, Self::of(&kind, tagged).unwrap_or_else(other));
        }
        let keyed: Keyed<'a> = serde_json::from_str(raw.get()).unwrap_or_default();
        let kinds = [("add", keyed.add), ("delete", keyed.delete), ("update", keyed.update)];
        let change = kinds.into_iter().find_map(|(kind, fields)| Self::of(kind, fields?));
        (ChangeForm::Keyed, change.unwrap_or_else(other))
    }

    fn fields(&self) -> Option<(&'static str, Fields<'a>)> {
        Some(match self {
            Self::Add { content } => {
                ("add", Fields { content: Some(content.clone()), ..Fields::default() })
            }
            Self::Delete { content } => {
                ("delete", Fields { content: content.clone(), ..Fields::default() })
            }
            Self::Update { unified_diff, move_path } => (
                "update",
                Fields {
                    unified_diff: Some(unified_diff.clone()),
                    move_path: Some(move_path.clone()),
                    ..Fields::default()
                },
            ),
            Self::Other(_) => return None,
        })
    }
}

impl Serialize for Changes<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.files.len()))?;
        for (path, change) in &self.files {
            match (change.fields(), self.form) {
                (Some((kind, fields)), ChangeForm::Tagged) => {
                    let kind = Some(Str::Borrowed(kind));
                    map.serialize_entry(path, &Fields { kind, ..fields })?;
                }
                (Some((kind, fields)), ChangeForm::Keyed) => {
                    map.serialize_entry(path, &std::collections::BTreeMap::from([(kind, fields)]))?;
                }
                (None, _) => {
                    let FileChange::Other(raw) = change else { continue };
                    map.serialize_entry(path, raw)?;
                }
            }
        }
        map.end()
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Changes<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ChangesVisitor;

        impl<'de> Visitor<'de> for ChangesVisitor {
            type Value = Changes<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("changes by path")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Changes<'de>, A::Error> {
                let mut changes = Changes::default();
                while let Some((path, raw)) = map.next_entry::<Str<'de>, &'de RawValue>()? {
                    let (form, change) = FileChange::read(raw);
                    changes.form = form;
                    changes.files.push((path, change));
                }
                Ok(changes)
            }
        }

        deserializer.deserialize_map(ChangesVisitor)
    }
}
