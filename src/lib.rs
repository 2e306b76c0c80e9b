//! An admission-controlled executor for native CPU work.
