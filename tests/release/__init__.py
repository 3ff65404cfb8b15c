"""What a release is held against beside `make test`: clients that come by npm. `make release-check` runs it."""
