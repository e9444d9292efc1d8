"""Candidates of TVM's MetaSchedule, as it compiles operators of Relax programs."""
