from hlorank_tune.measure.schema import HloModuleProto, ModuleTuningData, Tile, tile_tuning_data


def test_a_tile_run_holds_its_bounds_and_its_time():
    tiles = [Tile((4, 8), (16,)), Tile((2, 8))]
    data = tile_tuning_data(HloModuleProto(name="kernel"), tiles, [500, 700])
    again = ModuleTuningData.FromString(data.SerializeToString())
    bounds = [run.op_config.tile_size_config for run in again.runs]
    assert [list(b.output_bounds) for b in bounds] == [[4, 8], [2, 8]]
    assert [list(b.kernel_bounds) for b in bounds] == [[16], []]
    assert [run.profile.compute_time_ns for run in again.runs] == [500, 700]
    assert [run.is_default for run in again.runs] == [True, False]
    assert again.module.name == "kernel"


def test_fields_that_are_not_declared_survive():
    unknown = b"\xfa\x3e\x03abc"  # field 1007, three bytes
    module = HloModuleProto.FromString(HloModuleProto(name="m").SerializeToString() + unknown)
    assert unknown in module.SerializeToString()
