//! Items, in the form of newer versions.

use schemars::JsonSchema;

use super::body::body;
use super::event::Text;
use super::op::InputItem;
use crate::raw::Raw;
use crate::tagged::{Unknown, tagged};
use crate::text::Str;

body! {
    /// An item begins or is over.
    ItemEvent<'a> {
        /// The conversation.
        thread_id: Str<'a>,
        /// The turn.
        turn_id: Str<'a>,
        /// The item.
        item: TurnItem<'a>,
    }
}

tagged! {
    /// An item, in the form of newer versions. The older events say the same.
    #[derive(JsonSchema)]
    pub enum TurnItem<'a> by "type" {
        /// What the user said.
        UserMessage(UserMessageItem<'a>) = "UserMessage",
        /// What the model said.
        AgentMessage(AgentMessageItem<'a>) = "AgentMessage",
        /// What the model thought.
        Reasoning(ReasoningItem<'a>) = "Reasoning",
        /// A proposed plan.
        Plan(PlanItem<'a>) = "Plan",
        /// The web was searched.
        WebSearch(WebSearchItem<'a>) = "WebSearch",
        /// The memory was shortened.
        ContextCompaction(ItemName<'a>) = "ContextCompaction",
    } else {
        /// Any other.
        #[schemars(skip)]
        Other(Unknown<'a>),
    }
}

impl Default for TurnItem<'_> {
    fn default() -> Self {
        Self::Other(Unknown::default())
    }
}

body! {
    /// A proposed plan.
    PlanItem<'a> {
        /// Its id.
        id: Str<'a>,
        /// The text.
        text: Str<'a>,
    }
}

body! {
    /// What the user said.
    UserMessageItem<'a> {
        /// Its id.
        id: Str<'a>,
        /// Its pieces.
        content: Vec<InputItem<'a>>,
    }
}

body! {
    /// What the model said.
    AgentMessageItem<'a> {
        /// Its id.
        id: Str<'a>,
        /// Its pieces: `{"type": "Text", "text": …}`.
        content: Vec<MessagePiece<'a>>,
    } ? {
        /// `commentary` or `final_answer`.
        phase: Str<'a>,
    }
}

tagged! {
    /// A piece of what the model said.
    #[derive(JsonSchema)]
    pub enum MessagePiece<'a> by "type" {
        /// Text.
        Text(Text<'a>) = "Text",
    } else {
        /// One that is not known.
        #[schemars(skip)]
        Unknown(Unknown<'a>),
    }
}

body! {
    /// What the model thought.
    ReasoningItem<'a> {
        /// Its id.
        id: Str<'a>,
        /// Summed up, part by part.
        summary_text: Vec<Str<'a>>,
        /// Word for word, part by part.
        raw_content: Vec<Str<'a>>,
    }
}

body! {
    /// The web was searched.
    WebSearchItem<'a> {
        /// Its id.
        id: Str<'a>,
        /// What for.
        query: Str<'a>,
        /// A search, a page that was opened, a word that was looked for in it.
        action: Raw<'a>,
    }
}

body! {
    /// Nothing but a name.
    ItemName<'a> {
        /// Its id.
        id: Str<'a>,
    }
}
