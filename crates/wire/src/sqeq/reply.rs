//! What an agent tells when it was asked, and what came of a review.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::body::body;
use crate::raw::Raw;
use crate::text::Str;

body! {
    /// The skills there are.
    ListSkillsResponse<'a> {
        /// By directory.
        skills: Vec<SkillsOf<'a>>,
    }
}

body! {
    /// The skills for a directory.
    SkillsOf<'a> {
        /// Which.
        cwd: Str<'a>,
        /// The skills.
        skills: Vec<Skill<'a>>,
        /// Files that are none.
        errors: Vec<SkillError<'a>>,
    }
}

body! {
    /// A skill.
    Skill<'a> {
        /// Its name.
        name: Str<'a>,
        /// What it is for.
        description: Str<'a>,
        /// Where its file is.
        path: Str<'a>,
        /// `user`, `repo`, `system` or `admin`.
        scope: Str<'a>,
        /// It may be used.
        enabled: bool,
    } ? {
        /// The same in a few words.
        short_description: Str<'a>,
        /// How it is shown.
        interface: Raw<'a>,
        /// What it needs.
        dependencies: Raw<'a>,
    }
}

body! {
    /// A file that is no skill.
    SkillError<'a> {
        /// Where.
        path: Str<'a>,
        /// Why.
        message: Str<'a>,
    }
}

body! {
    /// The prompts there are.
    ListCustomPromptsResponse<'a> {
        /// Each.
        custom_prompts: Vec<CustomPrompt<'a>>,
    }
}

body! {
    /// A prompt the user wrote.
    CustomPrompt<'a> {
        /// Its name.
        name: Str<'a>,
        /// Where its file is.
        path: Str<'a>,
        /// Its text.
        content: Str<'a>,
    } ? {
        /// What it is for.
        description: Str<'a>,
        /// What may follow the name.
        argument_hint: Str<'a>,
    }
}

body! {
    /// The models there are.
    ListModelsResponse<'a> {
        /// Each.
        models: Vec<Model<'a>>,
    }
}

body! {
    /// A model.
    Model<'a> {
        /// What to pass as the model.
        model: Str<'a>,
        /// What to show.
        display_name: Str<'a>,
    } ? {
        /// What it is good for.
        description: Str<'a>,
    }
}

body! {
    /// A line of input.
    GetHistoryEntryResponse<'a> {
        /// Which line.
        offset: u64,
        /// Of which file.
        log_id: u64,
    } ? {
        /// The line with its time and session.
        entry: Raw<'a>,
    }
}

body! {
    /// Where the conversation is recorded.
    ConversationPath<'a> {
        /// Its id.
        conversation_id: Str<'a>,
        /// The file.
        path: Str<'a>,
    }
}

body! {
    /// A review begins.
    EnteredReviewMode<'a> {
    } ? {
        /// What is reviewed.
        target: Raw<'a>,
        /// The same up to 0.42: what the reviewer is told.
        prompt: Str<'a>,
        /// A few words for a person.
        user_facing_hint: Str<'a>,
    }
}

body! {
    /// A review is over.
    ExitedReviewMode<'a> {
        /// What came of it; none when it was stopped.
        review_output: Option<ReviewOutput<'a>>,
    }
}

body! {
    /// What came of a review.
    ReviewOutput<'a> {
        /// What was found.
        findings: Vec<Finding<'a>>,
        /// Whether the changes are right.
        overall_correctness: Str<'a>,
        /// Why.
        overall_explanation: Str<'a>,
        /// How sure that is, from 0 to 1.
        overall_confidence_score: f64,
    }
}

body! {
    /// Something a review found.
    Finding<'a> {
        /// In a line.
        title: Str<'a>,
        /// At length.
        body: Str<'a>,
        /// How sure it is, from 0 to 1.
        confidence_score: f64,
        /// How much it matters, 0 the most.
        priority: i64,
        /// Where.
        code_location: CodeLocation<'a>,
    }
}

body! {
    /// A place in a file.
    CodeLocation<'a> {
        /// The file.
        absolute_file_path: Str<'a>,
        /// From which line to which.
        line_range: LineRange,
    }
}

/// From which line to which.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct LineRange {
    /// The first.
    pub start: u64,
    /// The last.
    pub end: u64,
}
