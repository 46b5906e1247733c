//! The functions by name.

use super::Type;

macro_rules! functions {
    ($($name:literal $fun:ident($($arg:ident),*; $least:literal, $most:literal) -> $result:ident;)*) => {
        /// A function of the language.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Fun {
            $($fun,)*
        }

        /// Name, function, types of the arguments (the last one holds for the rest), fewest and most arguments, result.
        pub const FUNCTIONS: &[(&str, Fun, &[Type], usize, usize, Type)] =
            &[$(($name, Fun::$fun, &[$(Type::$arg),*], $least, $most, Type::$result),)*];
    };
}

functions! {
    "abs" Abs(Number; 1, 1) -> Number;
    "after" After(Text, Text; 2, 2) -> Text;
    "batch_time" BatchTime(; 0, 0) -> Number;
    "before" Before(Text, Text; 2, 2) -> Text;
    "ceil" Ceil(Number; 1, 1) -> Number;
    "coalesce" Coalesce(Any; 1, 16) -> Any;
    "concat" Concat(Any; 1, 16) -> Text;
    "contains" Contains(Text, Text; 2, 2) -> Bool;
    "count" Count(Text, Text; 2, 2) -> Number;
    "date" Date(Any; 1, 1) -> Text;
    "day" Day(Any; 1, 1) -> Number;
    "div" Div(Number; 2, 3) -> Number;
    "ends" Ends(Text, Text; 2, 2) -> Bool;
    "event_time" EventTime(; 0, 0) -> Number;
    "floor" Floor(Number; 1, 1) -> Number;
    "floor_time" FloorTime(Any, Text; 2, 2) -> Number;
    "greatest" Greatest(Any; 2, 16) -> Any;
    "header" Header(Text; 1, 1) -> Text;
    "hour" Hour(Any; 1, 1) -> Number;
    "key" Key(; 0, 0) -> Text;
    "least" Least(Any; 2, 16) -> Any;
    "length" Length(Text; 1, 1) -> Number;
    "lower" Lower(Text; 1, 1) -> Text;
    "minute" Minute(Any; 1, 1) -> Number;
    "month" Month(Any; 1, 1) -> Number;
    "number" Number(Any; 1, 1) -> Number;
    "position" Position(Text, Text; 2, 2) -> Number;
    "replace" Replace(Text, Text, Text; 3, 3) -> Text;
    "rfc3339" Rfc3339(Any; 1, 1) -> Text;
    "round" Round(Number; 1, 2) -> Number;
    "second" Second(Any; 1, 1) -> Number;
    "split" Split(Text, Text, Number; 3, 3) -> Text;
    "starts" Starts(Text, Text; 2, 2) -> Bool;
    "substring" Substring(Text, Number; 2, 3) -> Text;
    "text" Text(Any; 1, 1) -> Text;
    "time" Time(Any; 1, 1) -> Number;
    "trim" Trim(Text; 1, 1) -> Text;
    "upper" Upper(Text; 1, 1) -> Text;
    "weekday" Weekday(Any; 1, 1) -> Number;
    "year" Year(Any; 1, 1) -> Number;
}
